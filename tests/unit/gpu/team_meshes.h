/* Pairs with meshes by a team of lanes, in the precision that the including file is compiled for:
 * see team_world.cc. */
#ifndef TEAM_MESHES_H
#define TEAM_MESHES_H

#include "collide/collide.h"

#define team_meshes_call TB_SYMBOL(team_meshes_call)
typedef struct team_meshes_call {
    const tb_posed_shape *shapes; /* pairs x 2 */
    int32_t pairs, lanes;
    tb_real margin; /* m */
    void *memory;   /* the arena's */
    size_t bytes;
    /* the answer */
    tb_contact_point *points; /* of all pairs */
    int32_t capacity;         /* of them */
    int32_t *counts;          /* pairs */
    size_t wanted;            /* bytes at once */
    uint32_t flags;
} team_meshes_call;

#ifdef __cplusplus
extern "C" {
#endif
#define team_meshes TB_SYMBOL(team_meshes)
tb_status team_meshes(team_meshes_call *call);
#ifdef __cplusplus
}
#endif

#endif
