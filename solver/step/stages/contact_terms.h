/* Terms of a contact's rows beside directions: its law, the terms in c of its normal row, the
 * open contacts that Moreau's rule leaves out, and its friction from the last step. One contact
 * wide; contact_rows.c assembles a world's rows from it, large_rows.h those of a large world. */
#ifndef TB_CONTACT_TERMS_H
#define TB_CONTACT_TERMS_H

#include "contact/contact.h"
#include "model/model.h"

/* Timing shared by a step's contacts. */
typedef struct tb_contact_timing {
    tb_real dt;             /* s */
    tb_real theta;          /* 1: Stewart-Trinkle; 1/2: Moreau */
    tb_real slop;           /* m */
    tb_real recovery_speed; /* m/s */
} tb_contact_timing;

TB_FN tb_contact_timing tb_contact_timing_of(const tb_step_options *options, tb_real dt,
                                             tb_real theta)
{
    tb_contact_timing t;
    t.dt = dt;
    t.theta = theta;
    t.slop = TB_R(options->contact_slop);
    t.recovery_speed = TB_R(options->recovery_speed);
    return t;
}

TB_FN tb_law tb_contact_law(const tb_surface *surface)
{
    const bool rolls = surface->rolling_length > 0, spins = surface->spin_radius > 0;
    if (surface->kind == TB_CONTACT_FRICTIONLESS || surface->friction <= 0)
        return TB_LAW_UNILATERAL;
    if (surface->kind == TB_CONTACT_ROLLING && rolls) return TB_LAW_ROLLING;
    if (surface->kind >= TB_CONTACT_SPIN && spins) return TB_LAW_SPIN;
    return TB_LAW_COULOMB;
}

TB_FN int32_t tb_contact_law_rows(tb_law law)
{
    switch (law) {
    case TB_LAW_UNILATERAL: return 1;
    case TB_LAW_COULOMB: return 3;
    case TB_LAW_SPIN: return 4;
    case TB_LAW_ROLLING: return 6;
    /* not of contacts between bodies: tb_contact_law gives none of these */
    case TB_LAW_PLANAR:
    case TB_LAW_BILATERAL:
    case TB_LAW_BOX: break;
    }
    return TB_BLOCK_ROWS;
}

/* Velocity (m/s) by which a normal may approach within `time`, kept >= 0 when added to the normal
 * velocity: an open gap (m) closes at the most. Gaps within the slop count as closed; larger ones
 * count in eighths of it, so that contacts which differ by the last bits close together and do not
 * contradict each other. A penetration adds nothing: its recovery is a motion of its own (see
 * recovery.c) and never enters the momentum. */
TB_FN tb_real tb_approach_velocity(tb_real gap, tb_real slop, tb_real time)
{
    if (gap <= slop) return 0;
    if (slop > 0) gap = tb_floor(gap * 8 / slop) * slop / 8;
    return gap / time;
}

/* Velocity (m/s, <= 0) at which a penetration beyond the slop is given back within `time`, no
 * faster than the recovery speed. */
TB_FN tb_real tb_recovery_velocity(tb_real gap, tb_real slop, tb_real time, tb_real recovery_speed)
{
    return tb_max(tb_min(gap + slop, 0) / time, -recovery_speed);
}

/* Term in c of the normal row beside the free velocity. before: normal velocity at the start of
 * the step, m/s. */
TB_FN tb_real tb_contact_bias(const tb_contact_timing *t, tb_real gap, tb_real restitution,
                              tb_real before)
{
    const tb_real e = restitution;
    if (t->theta == 1) {
        /* an impact within the step bounces; anything else closes its gap at the most */
        if (e > 0 && before < 0 && gap + t->dt * before <= 0) return e * before;
        return tb_approach_velocity(gap, t->slop, t->dt);
    }
    /* Moreau: Newton's law; an open inelastic contact (see tb_contact_moreau_skips)
     * may close in the half step left */
    if (gap <= t->slop || e > 0) return e * before;
    return gap / (t->dt * (1 - t->theta));
}

/* Term in c of a tangential row beside the free velocity, where the normal row has Newton's law (Nützi 4.28):
 * the tangential restitution times the tangential velocity at the start of the step, m/s. */
TB_FN tb_real tb_contact_tangential_bias(const tb_contact_timing *t, tb_real gap,
                                         const tb_surface *surface, tb_real before,
                                         tb_real before_tangential)
{
    const tb_real e = TB_R(surface->restitution);
    const bool impact =
        t->theta == 1 ? e > 0 && before < 0 && gap + t->dt * before <= 0 : gap <= t->slop || e > 0;
    return impact ? TB_R(surface->tangential_restitution) * before_tangential : 0;
}

/* Term of a contact's normal row in the recovery's problem beside its xi (m/s): the velocity
 * that closes the gap, less the bias that xi has already. Moreau's scheme recovers no contacts:
 * its midpoint gap is not that of the end. */
TB_FN tb_real tb_contact_recovery(const tb_contact_timing *t, tb_real gap, tb_real bias)
{
    if (t->theta != 1) return 0;
    return tb_approach_velocity(gap, t->slop, t->dt) +
           tb_recovery_velocity(gap, t->slop, t->dt, t->recovery_speed) - bias;
}

/* The bias of a large world's contact, whose sweeps have no separate recovery: the velocity that
 * closes the gap is part of it. */
TB_FN tb_real tb_contact_bias_with_recovery(const tb_contact_timing *t, tb_real gap,
                                            tb_real restitution, tb_real before)
{
    const tb_real bias = tb_contact_bias(t, gap, restitution, before);
    if (t->theta != 1 || bias != 0) return bias;
    return tb_recovery_velocity(gap, t->slop, t->dt, t->recovery_speed);
}

/* Smallest extent of a shape, m; 0 where it is not known (then every open contact that would close
 * counts). */
TB_FN tb_real tb_shape_thickness(const tb_model_shape *shape)
{
    const double *size = shape->size;
    switch (shape->type) {
    case TB_SHAPE_PLANE:
    case TB_SHAPE_HEIGHT_FIELD: return TB_REAL_MAX;
    case TB_SHAPE_SPHERE:
    case TB_SHAPE_CAPSULE: return TB_R(2 * size[0]);
    case TB_SHAPE_CYLINDER: return TB_R(2 * (size[0] < size[1] ? size[0] : size[1]));
    case TB_SHAPE_BOX:
    case TB_SHAPE_ELLIPSOID: {
        const double xy = size[0] < size[1] ? size[0] : size[1];
        return TB_R(2 * (xy < size[2] ? xy : size[2]));
    }
    default: return 0;
    }
}

/* Moreau's index set holds the contacts closed at the midpoint (Nützi 4.30). An open one is added
 * only if the shapes, the thinner one `thin` thick, would pass so deep into each other before the
 * next midpoint that the overlap would no longer tell the side they came from. */
TB_FN bool tb_contact_moreau_skips(const tb_contact_timing *t, tb_real gap, tb_real thin,
                                   tb_real before)
{
    if (t->theta == 1 || gap <= t->slop) return false;
    const tb_real way = -before * t->dt;
    return !(way > gap && way > TB_R(0.5) * thin);
}

/* Two impulses along a contact's tangents as one vector in world axes: the form in which
 * friction is remembered, because tangents may turn between steps. */
TB_FN tb_vec3 tb_contact_slip(const double tangent1[3], const double tangent2[3], double impulse1,
                              double impulse2)
{
    double slip[3];
    for (int i = 0; i < 3; i++) slip[i] = impulse1 * tangent1[i] + impulse2 * tangent2[i];
    return tb_v3_load(slip);
}

#endif
