/* A step of a small world by the warp that keeps it (warp_fits.h): the stages of world.c.
 *
 * A step that needs anything else, more blocks than lanes, a recovery of positions or a general solver,
 * is left to the general kernel before the state has changed: UNSUPPORTED. */
#ifndef TB_GPU_WARP_STEP_H
#define TB_GPU_WARP_STEP_H

#include "gpu/batch/small/warp_merge.h"

/* ---- joint rows ---- */

typedef struct warp_row {
    int32_t dof;
    tb_real on, bias, lower, upper, compliance, gap, ask;
} warp_row;

TB_STATIC bool warp_limit_row(const warp_keep *keep, int32_t k, warp_row *row)
{
    const warp_model_row *of = &keep->common->row[k];
    const tb_real dt = keep->timing.dt, gap = of->on * (keep->q[of->coordinate] - of->bound);
    const tb_real way = 2 * dt * tb_abs(keep->u_free[of->dof]);
    if (!(gap <= way + TB_R(keep->options->contact_margin))) return false;
    row->dof = of->dof;
    row->on = of->on;
    row->lower = 0;
    row->upper = WARP_NONE;
    row->gap = gap;
    row->bias = tb_approach_velocity(gap, 0, dt);
    row->ask = tb_recovery_velocity(gap, TB_R(keep->options->closure_slop), dt,
                                    keep->timing.recovery_speed);
    return true;
}

TB_STATIC bool warp_actuator_row(const warp_keep *keep, int32_t a, warp_row *row)
{
    const warp_law law = keep->laws[a];
    row->dof = keep->common->row[a].dof;
    row->on = keep->common->row[a].on;
    row->lower = law.lower;
    row->upper = law.upper;
    row->bias = law.bias;
    row->compliance = law.compliance;
    return law.is;
}

/* The k-th row that there may be, like joint_row_at. */
TB_STATIC bool warp_row_at(const warp_keep *keep, int32_t k, warp_row *row)
{
    *row = TB_VALUE(warp_row){.dof = 0};
    if (k >= keep->possible_rows) return false;
    if (k < keep->actuators) return warp_actuator_row(keep, k, row);
    if (k >= keep->actuators + keep->common->dry_dofs) return warp_limit_row(keep, k, row);
    row->dof = keep->common->row[k].dof;
    row->on = 1;
    row->upper = keep->common->row[k].bound * keep->timing.dt;
    row->lower = -row->upper;
    return true;
}

/* Rows of joints as the first blocks; which lanes have one. */
TB_STATIC void warp_count_rows(warp_keep *keep, warp_row *row)
{
    const int32_t lane = tb_team_lane();
    const bool is = warp_row_at(keep, lane, row);
    const uint32_t bits = tb_team_ballot(is);
    if (is) keep->row_of[tb_count_bits(bits & ((1u << lane) - 1))] = (uint8_t)lane;
    if (TB_LEADER) keep->joint_rows = tb_count_bits(bits);
    tb_team_sync();
}

/* ---- blocks ---- */

/* The row of a joint, whitened, as a block. */
TB_STATIC void put_joint_row(const warp_keep *keep, const warp_row *row, const warp_rows *rows,
                             warp_own *b)
{
    const warp_model_dof *of = keep->common->dof;
    const warp_tree_place tree = of[row->dof].tree_place;
    TB_ROLLED
    for (uint32_t left = keep->slides; left != 0; left &= left - 1) {
        const int32_t i = lowest_bit(left);
        if (of[i].tree_place.column == tree.column)
            rows->y[rows->at[0] + i - tree.dof] = row->on * keep->common->roots[row->dof][i];
    }
    b->c[0] = row->on * keep->u_free[row->dof] + row->bias;
    b->lower = row->lower;
    b->upper = row->upper;
    b->compliance = row->compliance;
}

TB_FN double double_dot(tb_vec3 a, double x, double y, double z)
{
    return (double)a.x * x + (double)a.y * y + (double)a.z * z;
}

/* One side of a contact's rows: numbers of its dofs, the first one at y and `stride` from a row to the next,
 * and its part of c. Returns its part of the normal velocity before the step. */
TB_STATIC tb_real put_side(const warp_keep *keep, const tb_vec3 direction[3], tb_vec3 position,
                           int32_t body, tb_real side, int32_t rows, tb_real *y, int32_t stride,
                           double free_velocity[3])
{
    const warp_body *b = &keep->body[body];
    const warp_model_body *of = &keep->common->body[body];
    const tb_vec3 arm = tb_v3_sub(position, b->centre);
    const double ax = (double)arm.x, ay = (double)arm.y, az = (double)arm.z;
    const double *v = b->free_velocity, *s = b->free_spin;
    const double vx = v[0] + s[1] * az - s[2] * ay, vy = v[1] + s[2] * ax - s[0] * az,
                 vz = v[2] + s[0] * ay - s[1] * ax;
    for (int r = 0; r < 3; r++) {
        const tb_vec3 d = tb_v3_scale(direction[r], r < rows ? side : TB_R(0));
        free_velocity[r] += double_dot(d, vx, vy, vz);
        if (of->dof >= 0 && r < rows) {
            const tb_vec3 t = tb_m33_tmul_v3(&b->pose.rotation, tb_v3_cross(arm, d));
            const tb_real *root = of->spin_root;
            tb_real *own = y + r * stride + of->dof - of->tree_place.dof;
            own[0] = d.x * of->root, own[1] = d.y * of->root, own[2] = d.z * of->root;
            own[3] = t.x * root[0] + t.y * root[3] + t.z * root[6];
            own[4] = t.y * root[4] + t.z * root[7];
            own[5] = t.z * root[8];
        }
    }
    TB_ROLLED
    for (uint32_t left = of->tree; left != 0; left &= left - 1) {
        const int32_t i = lowest_bit(left);
        const tb_vec3 along = keep->common->whitened[body][i];
        for (int r = 0; r < 3; r++)
            if (r < rows)
                y[r * stride + i - of->tree_place.dof] += side * tb_v3_dot(direction[r], along);
    }
    const tb_vec3 from = tb_v3_sub(position, b->pose.position);
    const tb_vec3 at = tb_v3_add(b->velocity, tb_v3_cross(b->spin, from));
    return side * tb_v3_dot(direction[0], at);
}

/* A lane's contact: geometry, surface and identity. The block has the numbers of the solve. */
typedef struct warp_contact {
    tb_vec3 direction[3], position;
    uint64_t feature;
    uint32_t shapes;
    int32_t kind, pair, status;
    int32_t bodies[2];
    tb_real gap, bias, friction, restitution;
} warp_contact;

/* The lane's contact, from shared memory that blocks will overwrite. */
TB_STATIC void look_at_contact(const warp_keep *keep, const warp_sight *sight, int32_t contact,
                               warp_contact *c)
{
    const int32_t slot = keep->slot_of[contact];
    const tb_contact_point *point =
        &sight->points[TB_MANIFOLD_POINTS * slot + keep->point_of[contact]];
    const warp_candidate *pair = &keep->candidates[keep->pairs[slot]];
    c->pair = keep->pairs[slot];
    c->position = tb_v3_lerp(point->point_a, point->point_b, TB_R(0.5));
    c->direction[0] = point->normal;
    tb_v3_tangents(point->normal, &c->direction[1], &c->direction[2]);
    c->gap = point->gap;
    c->feature = point->feature;
    c->shapes = (uint32_t)pair->a << 16 | pair->b;
    c->bodies[0] = sight->shapes[pair->a].body;
    c->bodies[1] = sight->shapes[pair->b].body;
    c->kind = pair->kind;
    c->friction = pair->friction;
    c->restitution = pair->restitution;
    c->status = TB_STATUS_UNKNOWN;
}

/* The contact's place among the last step's, most often the same; -1: it is new. All lanes look for
 * theirs together: reads of one place by all cost one. */
TB_STATIC int32_t find_last(const warp_keep *keep, bool is, uint64_t feature, uint32_t shapes,
                            int32_t contact)
{
    const warp_record *t = keep->record;
    const int32_t count = keep->last_contacts;
    int32_t found = -1;
    if (is && contact < count && t->feature[contact] == feature && t->shapes[contact] == shapes)
        found = contact;
    if (!tb_team_any(is && found < 0)) return found;
    TB_ROLLED
    for (int32_t i = 0; i < count; i++)
        if (t->feature[i] == feature && t->shapes[i] == shapes) found = i;
    return found;
}

/* Impulses of the last step along the contact's directions of this one. Friction's impulses are the last
 * ones and a change by the turn of the tangents: where the normal stays, so do all their digits. */
TB_STATIC void take_impulses(const warp_record *t, int32_t last, const warp_contact *c,
                             warp_impulse lambda[3])
{
    tb_vec3 tangent1, tangent2;
    tb_v3_tangents(tb_v3(t->number[WARP_OF_NORMAL][last], t->number[WARP_OF_NORMAL + 1][last],
                         t->number[WARP_OF_NORMAL + 2][last]),
                   &tangent1, &tangent2);
    lambda[0] = t->impulse[0][last];
    if (c->kind < 3) return;
    const warp_impulse along1 = t->impulse[1][last], along2 = t->impulse[2][last];
    const tb_vec3 friction =
        tb_v3_add_scaled(tb_v3_scale(tangent1, TB_R(along1)), tangent2, TB_R(along2));
    const tb_vec3 turn1 = tb_v3_sub(c->direction[1], tangent1);
    const tb_vec3 turn2 = tb_v3_sub(c->direction[2], tangent2);
    lambda[1] = along1 + (warp_impulse)tb_v3_dot(friction, turn1);
    lambda[2] = along2 + (warp_impulse)tb_v3_dot(friction, turn2);
}

/* The contact as a block. */
TB_STATIC void put_contact(const warp_keep *keep, int32_t last, const warp_rows *rows,
                           warp_contact *c, warp_own *b)
{
    double free_velocity[3] = {0, 0, 0};
    b->upper = WARP_NONE;
    b->mu = c->friction;
    tb_real before = 0;
    TB_ROLLED
    for (int side = 0; side < 2; side++) /* one copy of the code */
        before +=
            put_side(keep, c->direction, c->position, side ? c->bodies[1] : c->bodies[0],
                     side ? TB_R(1) : TB_R(-1), c->kind,
                     rows->y + (side ? rows->at[1] : rows->at[0]), rows->stride, free_velocity);
    c->bias = tb_contact_bias(&keep->timing, c->gap, c->restitution, before);
    for (int r = 0; r < 3; r++) b->c[r] = TB_R(free_velocity[r]);
    b->c[0] += c->bias;
    if (last < 0) return;
    take_impulses(keep->record, last, c, b->lambda);
    c->status = keep->record->status[last];
}

/* Writes down a contact before the solve, so that no register holds it meanwhile. The record is the
 * state's only when the step is made. */
TB_STATIC void record_contact(const warp_keep *keep, int32_t contact, const warp_contact *c,
                              const warp_own *b)
{
    warp_record *t = keep->next_record;
    t->feature[contact] = c->feature;
    t->shapes[contact] = c->shapes;
    t->status[contact] = (uint8_t)c->status;
    t->kind[contact] = c->kind;
    t->pair[contact] = c->pair;
    t->bias[contact] = c->bias;
    t->number[WARP_OF_GAP][contact] = c->gap;
    for (int k = 0; k < 3; k++) {
        t->impulse[k][contact] = b->lambda[k];
        t->number[WARP_OF_POSITION + k][contact] = tb_v3_at(c->position, k);
        t->number[WARP_OF_NORMAL + k][contact] = tb_v3_at(c->direction[0], k);
    }
}

/* Shapes, pairs, points, then the blocks of joints and of contacts; the lane's own. */
TB_STATIC tb_status warp_detect(warp_keep *keep, warp_problem *p, warp_own *b, tb_real *gap,
                                tb_real *ask)
{
    const warp_sight sight = warp_sight_of(keep, p);
    const int32_t lane = tb_team_lane();
    if (!tb_team_all(warp_place_shape(keep, &sight))) return TB_DIVERGED;
    tb_team_sync();
    const int32_t pairs = warp_find_pairs(keep, &sight);
    TB_STAGE_DONE(TB_STAGE_BROAD);
    if (pairs < 0) return TB_UNSUPPORTED;
    warp_find_points(keep, &sight, pairs);
    if (tb_team_any(lane < pairs && keep->counts[lane] == WARP_NO_POINTS)) return TB_UNSUPPORTED;
    TB_STAGE_DONE(TB_STAGE_NARROW);
    warp_row row;
    warp_count_rows(keep, &row);
    if (!warp_number_contacts(keep, pairs)) return TB_UNSUPPORTED;
    if (keep->common->merges) warp_merge_points(keep, &sight);
    if (keep->contacts + keep->joint_rows > WARP_ITEMS) return TB_UNSUPPORTED;
    TB_STAGE_DONE(TB_STAGE_ROWS);
    const int32_t contact = lane - keep->joint_rows;
    const bool is = contact >= 0 && contact < keep->contacts;
    warp_contact c = {.feature = 0};
    if (is) look_at_contact(keep, &sight, contact, &c);
    const int32_t last = find_last(keep, is, c.feature, c.shapes, contact);
    /* rows go from the lanes that have made them to the first ones */
    const int32_t from = lane < keep->joint_rows ? keep->row_of[lane] : lane;
    tb_team_sync(); /* shapes and points have been read */
    warp_row mine;
    mine.dof = (int32_t)tb_team_take_real(TB_R(row.dof), from);
    mine.on = tb_team_take_real(row.on, from);
    mine.bias = tb_team_take_real(row.bias, from);
    mine.lower = tb_team_take_real(row.lower, from);
    mine.upper = tb_team_take_real(row.upper, from);
    mine.compliance = tb_team_take_real(row.compliance, from);
    *gap = tb_team_take_real(row.gap, from);
    *ask = tb_team_take_real(row.ask, from);
    b->is = lane < keep->joint_rows || is;
    warp_tree_place trees[2];
    warp_rows rows = {NULL, 0, {0, 0}};
    for (int side = 0; side < 2; side++)
        trees[side] = is ? keep->common->body[side ? c.bodies[1] : c.bodies[0]].tree_place
                         : keep->common->dof[mine.dof].tree_place;
    if (!warp_open_block(p, b->is, is ? c.kind : 1, trees, &rows)) return TB_UNSUPPORTED;
    if (lane < keep->joint_rows) {
        put_joint_row(keep, &mine, &rows, b);
        b->lambda[0] = keep->row_impulse[from];
    }
    if (is) {
        put_contact(keep, last, &rows, &c, b);
        record_contact(keep, contact, &c, b);
        *gap = c.gap;
        *ask = tb_contact_recovery(&keep->timing, c.gap, c.bias);
    }
    if (b->is) {
        if (!warp_weigh(p, b) && is) {
            warp_clear_block(p);
            for (int r = 0; r < 3; r++) b->c[r] = b->lambda[r] = 0;
            b->mu = 0;
            (void)warp_weigh(p, b);
        }
        warp_share_block(p, b);
    }
    tb_team_sync();
    return TB_OK;
}

/* ---- after the solve ---- */

/* Whether the block asks for a recovery of positions (recovery.c). */
TB_STATIC bool asks_for_recovery(const warp_keep *keep, const warp_own *b, tb_real gap, tb_real ask,
                                 double xi)
{
    const bool contact = tb_team_lane() >= keep->joint_rows;
    if (!contact && !(b->lower == 0 && b->upper == WARP_NONE)) return false;
    const tb_real slop = contact ? keep->timing.slop : TB_R(keep->options->closure_slop);
    return ask < 0 && gap < -2 * slop && TB_R(xi) + ask < 0;
}

/* OPEN, STICK or SLIP, like tb_block_status. */
TB_STATIC uint8_t warp_status(const warp_own *b)
{
    const tb_real rim = 1 - 16 * TB_REAL_EPSILON;
    const warp_impulse *l = b->lambda;
    if (!(b->mu > 0)) {
        if (b->lower == 0 && b->upper == WARP_NONE)
            return l[0] > 0 ? TB_CONTACT_SLIP : TB_CONTACT_OPEN;
        return l[0] <= b->lower || l[0] >= b->upper ? TB_CONTACT_SLIP : TB_CONTACT_STICK;
    }
    if (!(l[0] > 0)) return TB_CONTACT_OPEN;
    const warp_impulse most = rim * b->mu * l[0];
    return l[1] * l[1] + l[2] * l[2] >= most * most ? TB_CONTACT_SLIP : TB_CONTACT_STICK;
}

/* Errors of the block's answer in this step. */
TB_STATIC warp_errors warp_errors_of(const warp_own *b, const double x[3])
{
    const tb_real l0 = TB_R(b->lambda[0]), l1 = TB_R(b->lambda[1]), l2 = TB_R(b->lambda[2]);
    warp_errors e = {0, 0, 0};
    if (b->mu > 0) e.cone = tb_max(0, tb_sqrt(l1 * l1 + l2 * l2) - b->mu * tb_max(0, l0));
    e.cone = tb_max(e.cone, tb_max(b->lower - l0, l0 - b->upper));
    if (b->lower == 0 && b->upper == WARP_NONE) e.complementarity = tb_abs(l0 * TB_R(x[0]));
    return e;
}

static const double WARP_SHARE_OF_TOLERANCE = 0.9; /* see share_of_start */

/* The share of the start that the kept impulses have, the rest is the answer's. An answer contains the
 * impulse that stops the velocities that the steps before left within the tolerance. As the next start
 * it would leave as large velocities of the opposite sign, and every second step of a world at rest
 * would need a round. The share moves the kept impulses from the answer by less than the tolerance of the residual. */
TB_STATIC tb_real share_of_start(const warp_keep *keep, const warp_effort *s)
{
    const double most = WARP_SHARE_OF_TOLERANCE * keep->tolerance;
    return s->start > keep->tolerance ? TB_R(most) / TB_R(s->start) : TB_R(0);
}

TB_FN warp_impulse kept_impulse(warp_impulse start, warp_impulse answer, tb_real share)
{
    return answer + (warp_impulse)share * (start - answer);
}

/* Completes the contact's record. */
TB_STATIC void finish_contact(const warp_keep *keep, int32_t contact, const warp_own *b,
                              const double x[3], uint8_t status, tb_real share)
{
    warp_record *t = keep->next_record;
    const int32_t kind = t->kind[contact];
    t->status[contact] = status;
    for (int k = 0; k < 3; k++) {
        t->impulse[k][contact] = kept_impulse(t->impulse[k][contact], b->lambda[k], share);
        t->number[WARP_OF_VELOCITY + k][contact] =
            k < kind ? TB_R(x[k]) - (k ? TB_R(0) : t->bias[contact]) : TB_R(0);
    }
}

/* Stores the step's numbers and adds them to the sums of the launch. */
TB_STATIC void sum_up(warp_keep *keep, const warp_effort *s, uint32_t known, uint32_t kept,
                      int32_t rows)
{
    if (!TB_LEADER) return;
    warp_sums *now = &keep->now, *sum = &keep->sum;
    now->residual = s->residual;
    now->contacts = keep->contacts;
    now->rows = rows;
    now->rounds = s->rounds;
    now->sweeps = s->sweeps;
    now->known = tb_count_bits(known);
    now->kept = tb_count_bits(kept & known);
    sum->residual = fmax(sum->residual, now->residual);
    sum->contacts = now->contacts > sum->contacts ? now->contacts : sum->contacts;
    sum->rows = now->rows > sum->rows ? now->rows : sum->rows;
    sum->rounds += now->rounds;
    sum->sweeps += now->sweeps;
    sum->known += now->known;
    sum->kept += now->kept;
    keep->time += (double)keep->timing.dt;
    keep->steps++;
    keep->last_contacts = keep->contacts;
}

TB_STATIC void warp_end(warp_keep *keep, const warp_effort *s, const warp_own *b, tb_real gap,
                        const double x[3], warp_errors *errors)
{
    const int32_t lane = tb_team_lane(), rows = keep->joint_rows;
    const int32_t k = lane < rows ? keep->row_of[lane] : 0;
    const uint8_t last = lane < rows ? keep->row_status[k] : (uint8_t)0;
    const warp_impulse start = lane < rows ? keep->row_impulse[k] : (warp_impulse)0;
    const tb_real share = share_of_start(keep, s);
    uint8_t status = 0, before = TB_STATUS_UNKNOWN;
    *errors = TB_VALUE(warp_errors){0, 0, 0};
    tb_team_sync();
    if (lane < keep->possible_rows) {
        keep->row_impulse[lane] = 0;
        keep->row_status[lane] = 0;
    }
    if (lane < keep->actuators) keep->actuator_force[lane] = keep->pushing[lane];
    tb_team_sync();
    if (b->is) {
        status = warp_status(b);
        *errors = warp_errors_of(b, x);
        if (lane < rows) {
            if (last > 0) before = (uint8_t)(last - 1);
            keep->row_impulse[k] = kept_impulse(start, b->lambda[0], share);
            keep->row_status[k] = (uint8_t)(1 + status);
        } else {
            before = keep->next_record->status[lane - rows];
            errors->penetration = tb_max(0, -gap);
            finish_contact(keep, lane - rows, b, x, status, share);
        }
    }
    const uint32_t known = tb_team_ballot(b->is && before != TB_STATUS_UNKNOWN);
    const uint32_t kept = tb_team_ballot(b->is && before == status);
    const int32_t three = tb_count_bits(tb_team_ballot(b->is && b->mu > 0));
    sum_up(keep, s, known, kept, keep->joint_rows + keep->contacts + 2 * three);
    tb_team_sync(); /* all are done with the records */
    if (TB_LEADER) {
        warp_record *record = keep->record;
        keep->record = keep->next_record;
        keep->next_record = record;
    }
    tb_team_sync();
}

/* ---- a step ---- */

/* Controls of the course for this step. */
TB_STATIC void take_controls(warp_keep *keep)
{
    const int32_t actuators = keep->actuators, lane = tb_team_lane();
    const double *next = keep->course_controls;
    if (!next) return;
    if (lane < actuators) keep->controls[lane] = next[lane];
    tb_team_sync();
    if (TB_LEADER) keep->course_controls = next + actuators;
}

/* One step of a world that warp_take has taken up, and the errors of the lane's own block. UNSUPPORTED:
 * none, the state is as it was. DIVERGED: likewise, and the world has ended. */
TB_STATIC tb_status warp_step(warp_keep *keep, warp_problem *p, warp_errors *errors)
{
    warp_own b = TB_VALUE(warp_own){.is = false};
    double x[3] = {0, 0, 0};
    tb_real gap = 0, ask = 0;
    take_controls(keep);
    if (!warp_begin(keep, p)) return TB_DIVERGED;
#ifndef TB_SINGLE
    if (warp_turns_fast(keep)) return TB_UNSUPPORTED;
#endif
    const tb_status status = warp_detect(keep, p, &b, &gap, &ask);
    TB_STAGE_DONE(TB_STAGE_CONTACTS);
    if (status != TB_OK) return status;
    warp_effort effort;
    if (!warp_solve_blocks(p, keep->joint_rows + keep->contacts, keep->common->columns,
                           keep->tolerance, &b, x, &effort))
        return TB_UNSUPPORTED;
    if (tb_team_any(b.is && asks_for_recovery(keep, &b, gap, ask, x[0]))) return TB_UNSUPPORTED;
    TB_STAGE_DONE(TB_STAGE_SOLVE);
    if (!warp_integrate(keep, warp_whitened(p))) return TB_DIVERGED;
    warp_end(keep, &effort, &b, gap, x, errors);
    TB_STAGE_DONE(TB_STAGE_END);
    return TB_OK;
}

#endif
