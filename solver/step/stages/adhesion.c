/* Adhesion: an actuator that pulls its body towards all that the body touches, and surfaces whose
 * contacts pull.
 *
 * An actuator's force is shared equally by the body's contacts; a surface's counts for each contact
 * (MuJoCo's XML reference, actuator/adhesion and body/geom/adhesion). Both act along the normals.
 * Under the exact law an attraction a at a contact is the cone moved down the normal by a: the
 * contact opens where it is pulled by more than a, and friction is bounded by mu times (net normal
 * force + a). So a step applies the impulses dt a beforehand,
 *
 *     c <- c - G a dt,    u_free <- u_free - M^-1 W a dt,
 *
 * and solves for compressive impulses as without adhesion. An actuator acts on contacts that are
 * closed within the slop or pushed in the last step, a surface also across its adhesion range. */
#include <math.h>

#include "step/stages/stages.h"

/* Pull of the actuator, N. */
TB_STATIC double adhesion_force(const tb_world *w, int32_t actuator)
{
    const tb_model_actuator *a = &w->model->actuators[actuator];
    if (a->disabled) return 0;
    const double control = tb_actuator_control_now(w, actuator);
    const double force = fmax(0.0, a->gain[0] * control);
    return a->force_limited ? fmin(fmax(force, a->force_lower), a->force_upper) : force;
}

TB_STATIC bool contact_holds(const tb_world *w, const tb_contact_record *r)
{
    return r->gap <= w->options->contact_slop || r->status == TB_CONTACT_STICK ||
           r->status == TB_CONTACT_SLIP;
}

TB_STATIC bool sticks_to(const tb_world *w, const tb_contact_record *r, int32_t body)
{
    const tb_model_shape *shapes = w->model->shapes;
    if (shapes[r->shape_a].body != body && shapes[r->shape_b].body != body) return false;
    return contact_holds(w, r);
}

/* Subtracts the pull of a contact's surfaces from its normal impulse. */
TB_STATIC void pull_surfaces(const tb_world *w, int32_t contact, tb_real *impulses)
{
    const tb_contact_record *r = &w->records[contact];
    const tb_surface surface = tb_model_pair_surface(w->model, r->shape_a, r->shape_b);
    if (surface.adhesion == 0 || !(r->gap <= surface.adhesion_range || contact_holds(w, r))) return;
    impulses[w->blocks[w->first_contact_block + contact].row] -= TB_R(surface.adhesion) * w->dt;
}

/* Subtracts one actuator's pull from the normal impulses of its contacts; one lane's work. */
TB_STATIC void share_pull(tb_world *w, int32_t actuator, tb_real *impulses)
{
    const tb_block *blocks = w->blocks + w->first_contact_block;
    const int32_t body = w->model->actuators[actuator].body;
    int32_t count = 0;
    for (int32_t i = 0; i < w->number_of_contacts; i++) count += sticks_to(w, &w->records[i], body);
    w->actuator_force[actuator] = adhesion_force(w, actuator);
    const tb_real share =
        TB_R(w->actuator_force[actuator] * (double)w->dt / (count > 0 ? count : 1));
    for (int32_t i = 0; i < w->number_of_contacts; i++)
        if (sticks_to(w, &w->records[i], body)) impulses[blocks[i].row] -= share;
}

TB_EXTERN tb_status tb_world_adhere(tb_world *world, tb_error *error)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    if (!m->has_adhesion) return TB_OK;
    const int32_t rows = w->number_of_rows, dofs = m->number_of_dofs;
    tb_real *impulses = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    tb_real *xi = TB_ARENA_ARRAY(w->arena, tb_real, rows);
    tb_real *s = TB_ARENA_ARRAY(w->arena, tb_real, dofs);
    double *change = TB_ARENA_ARRAY(w->arena, double, dofs);
    if (!impulses || !xi || !s || !change) return tb_fail_memory(error, 0, "a step's adhesion");
    TB_EACH (r, rows) impulses[r] = 0;
    tb_team_sync();
    if (m->has_adhesive_surfaces)
        TB_EACH (i, w->number_of_contacts) pull_surfaces(w, i, impulses);
    tb_team_sync();
    for (int32_t a = 0; TB_LEADER && a < m->number_of_actuators; a++)
        if (m->actuators[a].transmission == TB_TRANSMISSION_BODY) share_pull(w, a, impulses);
    tb_team_sync();
    if (w->number_of_contacts == 0) return TB_OK;

    /* contacts have no compliance, so that this adds G times the impulses alone */
    const tb_problem problem = tb_world_problem(w);
    tb_problem_apply(&problem, impulses, s, xi);
    TB_EACH (r, rows) w->c[r] = xi[r];
    TB_EACH (i, dofs) change[i] = (double)s[i];
    tb_team_sync();
    tb_dynamics_unwhiten(&w->dynamics, change);
    if (TB_LEADER) w->pulled = change;
    TB_EACH (i, dofs) w->u_free[i] += TB_R(change[i]);
    tb_team_sync();
    return TB_OK;
}
