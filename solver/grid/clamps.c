/* Clamps: nodes of a soft body that move as a rigid thing says.
 *
 * A clamp holds the material that was in its box at the start. Its frame stands, moves with a constant velocity, or is
 * a rigid body's. At the begin of a substep a node whose place lies in the moved box has the reference
 * coordinate that the frame gives it, exactly, so that nothing drifts, and the velocity of the frame.
 * The impulses that this takes act on the rigid body in the other direction: those of this substep are
 * part of its prediction for the next one (partners.c), as the weight of the held nodes is small beside it.
 * Formulas: nodes/clamps.h. */
#include <string.h>

#include "grid/grid_internal.h"

static tb_soft_rigid *rigid_of(const tb_soft_world *w, const tb_soft_clamp *clamp)
{
    return clamp->rigid > 0 && clamp->rigid <= w->number_of_rigid ? w->rigid + (clamp->rigid - 1)
                                                                  : NULL;
}

bool tb_soft_clamp_follows(const tb_soft_world *w, int32_t clamp)
{
    return rigid_of(w, w->scene.clamps + clamp) != NULL;
}

void tb_soft_clamps_place(tb_soft_world *w)
{
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
        const tb_soft_clamp *clamp = w->scene.clamps + c;
        const tb_soft_rigid *r = rigid_of(w, clamp);
        const double *v = clamp->velocity;
        tb_soft_frame *f = w->frames + c;
        memset(f, 0, sizeof *f);
        memcpy(f->velocity, v, sizeof f->velocity);
        f->time = w->time;
        f->is_body = r != NULL;
        f->moves = f->is_body || v[0] != 0 || v[1] != 0 || v[2] != 0;
        if (r == NULL) continue;
        f->start = clamp->start;
        f->now = (tb_pose){r->position, tb_q_matrix(r->orientation)};
        f->centre = r->centre;
        memcpy(f->twist, r->twist, sizeof f->twist);
    }
}

static void take_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    tb_soft_field *f = w->fields + body;
    (void)context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const double x[3] = {tb_soft_coordinate(w, 0, i), tb_soft_coordinate(w, 1, j),
                             tb_soft_coordinate(w, 2, k)};
        if (f->held[n] > 0 && w->frames[f->held[n] - 1].moves) f->held[n] = 0;
        if (f->layer[n] == TB_SOFT_NO_LAYER) continue;
        for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
            const tb_soft_clamp *clamp = w->scene.clamps + c;
            double X[3];
            if (clamp->body != body || !w->frames[c].moves) continue;
            tb_soft_frame_reference(w->frames + c, x, X);
            if (!tb_soft_box_holds(&w->space, clamp->lower, clamp->upper, X)) continue;
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

void tb_soft_clamp_receive(tb_soft_world *w, int32_t clamp, const double impulse[3],
                           const double moment[3])
{
    tb_soft_rigid *r = rigid_of(w, w->scene.clamps + clamp);
    for (int a = 0; a < 3 && r != NULL; a++) {
        r->impulse[a] += impulse[a];
        r->impulse[3 + a] += moment[a];
    }
}

static bool held_part(tb_soft_world *w, int32_t body, const int32_t at[3], int32_t n,
                      const void *context, tb_soft_sums *sums)
{
    const int32_t clamp = *(const int32_t *)context;
    return tb_soft_held_impulse(&w->space, w->fields + body, w->frames + clamp, clamp + 1, at, n,
                                sums);
}

static void hold_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    const tb_soft_field *f = w->fields + body;
    (void)context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const double x[3] = {tb_soft_coordinate(w, 0, i), tb_soft_coordinate(w, 1, j),
                             tb_soft_coordinate(w, 2, k)};
        if (f->held[n] == 0 || f->layer[n] != 0) continue;
        tb_soft_frame_velocity(w->frames + (f->held[n] - 1), x, f->v + 3 * (size_t)n);
    }
}

void tb_soft_clamps_hold(tb_soft_world *w, int32_t body)
{
    if (w->fields[body].held == NULL) return;
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
        if (w->scene.clamps[c].body != body || !tb_soft_clamp_follows(w, c)) continue;
        const tb_soft_sums s = tb_soft_add_up(w, body, held_part, &c);
        tb_soft_clamp_receive(w, c, s.momentum, s.angular);
    }
    tb_soft_planes(w, body, hold_plane, NULL);
}

bool tb_soft_clamped_to(const tb_soft_world *w, int32_t body, int32_t obstacle)
{
    const int32_t rigid = w->scene.obstacles[obstacle].rigid;
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++)
        if (rigid > 0 && w->scene.clamps[c].body == body && w->scene.clamps[c].rigid == rigid)
            return true;
    return false;
}
