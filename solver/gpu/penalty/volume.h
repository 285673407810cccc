/* The volume law on a GPU: what runs of balls and of solids share on the host. */
#ifndef TB_GPU_VOLUME_H
#define TB_GPU_VOLUME_H

#include "gpu/device/device.h"
#include "gpu/penalty/balls.h"
#include "gpu/penalty/solids.h"

/* above every number of a step */
enum { TB_GPU_NEVER_BYTE = 0x7f };

/* The scene stays on the card from run to run; a run brings the bodies' numbers there and back. */
typedef struct tb_gpu_volume {
    tb_gpu_device device;
    tb_gpu_buffer scene, memory, rooms;
    tb_gpu_balls balls; /* pointers of the card */
    tb_gpu_solids solids;
    int processors;
} tb_gpu_volume;

/* An array of a run or a scene on the card. */
typedef struct tb_gpu_array {
    void *to; /* the pointer that gets its address */
    const void *from;
    size_t bytes;
    int fill; /* where `from` is NULL */
} tb_gpu_array;

/* Results of a run on the card. */
typedef struct tb_gpu_volume_results {
    const double *y, *point, *deepest;
    const int32_t *step_contacts, *diverged, *degenerate;
} tb_gpu_volume_results;

/* Memory for arrays, one behind the other, with the host's bytes or a fill in them. */
tb_status tb_gpu_volume_place(tb_gpu_volume *volume, tb_gpu_buffer *buffer,
                              const tb_gpu_array *arrays, int count, tb_error *error);
/* Begins to copy bytes to the host. */
tb_status tb_gpu_volume_fetch(tb_gpu_volume *volume, void *to, const void *from, size_t bytes,
                              tb_error *error);

/* Bring a scene, and the worlds of a run; the second starts the launch. */
tb_status tb_gpu_balls_scene(tb_gpu_volume *volume, const tb_balls_scene *scene, tb_error *error);
tb_status tb_gpu_balls_launch(tb_gpu_volume *volume, const tb_volume_run *run,
                              tb_gpu_volume_results *results, tb_error *error);
tb_status tb_gpu_solids_scene(tb_gpu_volume *volume, const tb_solids_scene *scene, tb_error *error);
tb_status tb_gpu_solids_launch(tb_gpu_volume *volume, const tb_volume_run *run,
                               tb_gpu_volume_results *results, tb_error *error);
/* After a launch of solids: *again is set where there was no room for all pairs or fragments; the room
 * grows, and the run is to be made once more. */
tb_status tb_gpu_solids_grow(tb_gpu_volume *volume, bool *again, tb_error *error);

#ifdef __cplusplus
extern "C" {
#endif
/* The backend's entries. */
tb_status tb_gpu_volume_open(int32_t device, void **context, tb_error *error);
tb_status tb_gpu_volume_run(void *context, tb_volume_run *run, tb_error *error);
void tb_gpu_volume_close(void *context);
#ifdef __cplusplus
}
#endif

#endif
