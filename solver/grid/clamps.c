/* Clamps: nodes of a soft body that move as a rigid thing says.
 *
 * A clamp holds the material that was in its box at the start. Its frame stands, moves with a constant velocity, or is
 * a rigid body's. At the begin of a substep a node whose place lies in the moved box has the reference
 * coordinate that the frame gives it, exactly, so that nothing drifts, and the velocity of the frame.
 * The impulses that this takes act on the rigid body in the other direction: those of this substep are
 * part of its prediction for the next one (partners.c), as the weight of the held nodes is small beside it. */
#include <string.h>

#include "grid/grid_internal.h"

static tb_soft_rigid *rigid_of(const tb_soft_world *w, const tb_soft_clamp *clamp)
{
    return clamp->rigid > 0 && clamp->rigid <= w->number_of_rigid ? w->rigid + (clamp->rigid - 1)
                                                                  : NULL;
}

static bool moves(const tb_soft_world *w, const tb_soft_clamp *c)
{
    return c->velocity[0] != 0 || c->velocity[1] != 0 || c->velocity[2] != 0 ||
           rigid_of(w, c) != NULL;
}

bool tb_soft_clamp_holds(const tb_soft_world *w, const tb_soft_clamp *clamp, const double X[3])
{
    return tb_soft_box_holds(&w->space, clamp->lower, clamp->upper, X);
}

/* Where the material at x was at the start. */
static void reference_of(const tb_soft_world *w, const tb_soft_clamp *c, const double x[3],
                         double X[3])
{
    const tb_soft_rigid *r = rigid_of(w, c);
    if (r == NULL) {
        for (int a = 0; a < 3; a++) X[a] = x[a] - w->time * c->velocity[a];
        return;
    }
    const tb_pose now = {r->position, tb_q_matrix(r->orientation)};
    tb_v3_store(X, tb_pose_point(&c->start, tb_pose_inverse_point(&now, tb_v3_load(x))));
}

void tb_soft_clamp_velocity(const tb_soft_world *w, int32_t clamp, const double x[3], double v[3])
{
    const tb_soft_clamp *c = w->scene.clamps + clamp;
    const tb_soft_rigid *r = rigid_of(w, c);
    memcpy(v, c->velocity, 3 * sizeof *v);
    if (r == NULL) return;
    const tb_vec3 arm = tb_v3_sub(tb_v3_load(x), r->centre);
    tb_v3_store(v, tb_v3_add(tb_v3_load(r->twist), tb_v3_cross(tb_v3_load(r->twist + 3), arm)));
}

static void take_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    tb_soft_field *f = w->fields + body;
    (void)context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const double x[3] = {tb_soft_coordinate(w, 0, i), tb_soft_coordinate(w, 1, j),
                             tb_soft_coordinate(w, 2, k)};
        if (f->held[n] > 0 && moves(w, w->scene.clamps + (f->held[n] - 1))) f->held[n] = 0;
        if (f->layer[n] == TB_SOFT_NO_LAYER) continue;
        for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
            const tb_soft_clamp *clamp = w->scene.clamps + c;
            double X[3];
            if (clamp->body != body || !moves(w, clamp)) continue;
            reference_of(w, clamp, x, X);
            if (!tb_soft_clamp_holds(w, clamp, X)) continue;
            f->held[n] = (uint8_t)(c + 1);
            memcpy(f->X + 3 * (size_t)n, X, sizeof X);
        }
    }
}

void tb_soft_clamps_take(tb_soft_world *w)
{
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++)
        if (w->fields[b].held != NULL) tb_soft_planes(w, b, take_plane, NULL);
}

void tb_soft_clamp_push(tb_soft_world *w, int32_t clamp, const double x[3], const double push[3])
{
    tb_soft_rigid *r = rigid_of(w, w->scene.clamps + clamp);
    if (r != NULL) tb_soft_rigid_push(r, x, push);
}

void tb_soft_clamps_hold(tb_soft_world *w, int32_t body)
{
    tb_soft_field *f = w->fields + body;
    if (f->held == NULL) return;
    for (int32_t k = f->lower[2]; k < f->upper[2]; k++)
        TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
            double v[3], push[3], *own = f->v + 3 * (size_t)n;
            const double x[3] = {tb_soft_coordinate(w, 0, i), tb_soft_coordinate(w, 1, j),
                                 tb_soft_coordinate(w, 2, k)};
            if (f->held[n] == 0 || f->layer[n] != 0) continue;
            tb_soft_clamp_velocity(w, f->held[n] - 1, x, v);
            for (int a = 0; a < 3; a++) {
                push[a] = f->mass[n] * (own[a] - v[a]);
                own[a] = v[a];
            }
            tb_soft_clamp_push(w, f->held[n] - 1, x, push);
        }
}

bool tb_soft_clamped_to(const tb_soft_world *w, int32_t body, int32_t obstacle)
{
    const int32_t rigid = w->scene.obstacles[obstacle].rigid;
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++)
        if (rigid > 0 && w->scene.clamps[c].body == body && w->scene.clamps[c].rigid == rigid)
            return true;
    return false;
}
