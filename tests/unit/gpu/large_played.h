/* Large-world mode as a card runs it, compiled as C++ for this machine with one lane: see
 * large_played.cc. */
#ifndef LARGE_PLAYED_H
#define LARGE_PLAYED_H

#include "step/large/large_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tb_large_played tb_large_played;

/* The last step's result, for tests. Borrowed. */
typedef struct large_view {
    int32_t pairs, units, contacts, colours, rounds, regrowths;
    const int32_t *pair_shapes;       /* pairs x 2: model shapes, the finder first */
    const int32_t *links;             /* units x 2, in the order of colours */
    const int32_t *colour_from;       /* colours + 1 */
    const tb_contact_record *records; /* contacts, in the model's order of shapes */
} large_view;

/* Steps a state as tb_gpu_large_step does. capacity: pairs and contacts to begin with; 0: as
 * usual. */
#ifndef large_played_step /* lanes have a name of their own for it */
#define large_played_step TB_SYMBOL(large_played_step)
#endif
tb_status large_played_step(tb_state *state, const tb_large_plan *plan,
                            const tb_step_options *options, int32_t steps, int32_t capacity,
                            tb_certificate *certificate, large_view *view);

#ifdef __cplusplus
}
#endif

#endif
