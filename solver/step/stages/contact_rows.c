/* Contacts become rows: force directions, free velocities, restitution and gap terms, warm start.
 *
 * Rows are written about the point midway between both surfaces, the same for A and B, so that a
 * common motion of both bodies drops out exactly. c of a row is its xi without impulses (Nützi
 * 4.31): its free velocity, plus e times the velocity before where the contact closes, plus gap /
 * time where it has a gap to bridge (Betz 2.33). recovery.c removes penetrations.
 *
 * Two points of a body cannot move along the line between them: such rows depend on each other, and
 * if rounding makes their c inconsistent, only impulses as large as friction allows satisfy them.
 * For bodies a meter from their tree's root a float's rounding amounts to a residual of 1e-6. So
 * free velocities are computed once for the body and taken to each point in double. */
#include <math.h>
#include <string.h>

#include "step/stages/detect/last_contacts.h"
#include "step/stages/stages.h"

TB_EXTERN tb_motion tb_prescribed_motion(const tb_world *world, int32_t body, tb_vec3 point)
{
    const tb_world *w = world;
    const tb_model_body *b = &w->model->bodies[body];
    tb_motion v = tb_motion_zero();
    if (w->model->number_of_kinematic_bodies == 0) return v;
    int32_t base = b->fixed_to;
    if (b->tree >= 0) {
        const int32_t first = w->model->trees[b->tree].body;
        base = w->model->bodies[w->model->bodies[first].parent].fixed_to;
    }
    if (w->model->bodies[base].kinematic < 0) return v;
    v = w->dynamics.velocities[base];
    v.linear = tb_motion_at(v, tb_v3_sub(point, w->dynamics.poses[base].position));
    return v;
}

/* Directions of a contact's rows: linear ones first, then the same again as angular ones, scaled to
 * m/s. */
typedef struct directions {
    int32_t linear, rows;
    tb_real spin, rolling; /* m: scales of the angular ones */
} directions;

TB_STATIC directions directions_of(const tb_world_contact *c, tb_law law)
{
    directions k;
    k.rows = tb_contact_law_rows(law);
    k.linear = k.rows < 3 ? k.rows : 3;
    k.spin = TB_R(c->surface.spin_radius);
    k.rolling = TB_R(c->surface.rolling_length);
    return k;
}

TB_STATIC tb_vec3 direction_at(const tb_world_contact *c, int32_t n)
{
    if (n == 0 || n == 3) return c->normal;
    return n == 1 || n == 4 ? c->tangent1 : c->tangent2;
}

TB_STATIC tb_real scale_at(const directions *k, int32_t n)
{
    if (n < 3) return 1;
    return n == 3 ? k->spin : k->rolling;
}

/* A free body's six columns: the direction, and its moment about the centre in body axes. */
TB_STATIC void fill_single_free(const tb_world *w, const tb_world_contact *c, const directions *k,
                                int32_t body, tb_real side, int32_t width, tb_real *values)
{
    const tb_pose *pose = &w->dynamics.poses[body];
    const tb_vec3 r = tb_v3_sub(c->position, pose->position);
    const tb_mat33 rotation = pose->rotation;
    for (int32_t n = 0; n < k->rows; n++) {
        tb_real *row = values + n * width;
        const tb_vec3 d = tb_v3_scale(direction_at(c, n), side * scale_at(k, n));
        const bool linear = n < k->linear;
        const tb_vec3 moment = tb_m33_tmul_v3(&rotation, linear ? tb_v3_cross(r, d) : d);
        row[0] = linear ? d.x : 0, row[1] = linear ? d.y : 0, row[2] = linear ? d.z : 0;
        row[3] = moment.x, row[4] = moment.y, row[5] = moment.z;
    }
}

/* A column on the way from a body to its root, and the column above it. A card reads the next step's numbers
 * while it waits for those of this one. */
typedef struct chain_column {
    int32_t column, above; /* above: -1: none */
    int32_t dof, side;     /* side 0: the end of the way, or both bodies of a contact move alike */
} chain_column;

TB_STATIC chain_column column_at(const tb_chains *chains, int32_t column)
{
    return TB_VALUE(chain_column){column, chains->parents[column], chains->dofs[column],
                                  chains->sides[column]};
}

TB_STATIC chain_column column_above(const tb_chains *chains, chain_column at)
{
    if (at.above < 0) return TB_VALUE(chain_column){-1, -1, 0, 0};
    return column_at(chains, at.above);
}

/* W: velocity of B minus velocity of A along every direction, for unit velocity of every dof. */
TB_STATIC void fill_rows(const tb_world *w, const tb_chains *chains, const tb_world_contact *c,
                         const directions *k, tb_real *values)
{
    const tb_model *m = w->model;
    const int32_t width = chains->width;
    const tb_motion *axes = w->dynamics.axes;
    const tb_vec3 normal = c->normal, tangent1 = c->tangent1, tangent2 = c->tangent2;
    TB_ROLLED
    for (int s = 0; s < 2; s++) {
        const int32_t body = s ? c->body_b : c->body_a, head = chains->heads[s];
        if (head < 0) continue;
        const tb_real side = s ? TB_R(1) : TB_R(-1);
        const int32_t tree = m->bodies[body].tree;
        if (m->trees[tree].single_free) {
            fill_single_free(w, c, k, body, side, width, values + head - 5);
            continue;
        }
        const tb_vec3 r = tb_v3_sub(c->position, w->dynamics.references[tree]);
        chain_column at = column_at(chains, head);
        while (at.side != 0) { /* from 0 up both sides move alike */
            const int32_t i = at.column;
            const tb_motion axis = axes[at.dof];
            at = column_above(chains, at);
            const tb_vec3 v = tb_motion_at(axis, r);
            values[i] = side * tb_v3_dot(normal, v);
            if (k->linear == 3) {
                values[width + i] = side * tb_v3_dot(tangent1, v);
                values[2 * width + i] = side * tb_v3_dot(tangent2, v);
            }
            for (int32_t n = 3; n < k->rows; n++)
                values[n * width + i] =
                    side * scale_at(k, n) * tb_v3_dot(direction_at(c, n), axis.angular);
        }
    }
}

/* Moreau's rule for an open contact. */
TB_STATIC bool moreau_skips(const tb_world *w, const tb_contact_timing *timing,
                            const tb_world_contact *c, tb_real before)
{
    const tb_model *m = w->model;
    const tb_real thin = tb_min(tb_shape_thickness(&m->shapes[c->shape_a]),
                                tb_shape_thickness(&m->shapes[c->shape_b]));
    return tb_contact_moreau_skips(timing, c->gap, thin, before);
}

/* Friction of the last step along a contact's tangents, in case impulses have more digits than
 * directions: the pair along these that comes nearest to its old value, so that tangents a rounding
 * off unit length, or turned by their last bits, leave it unchanged. */
TB_STATIC void keep_friction(const tb_world *w, const tb_world_contact *c, const contact_past *past,
                             int32_t row)
{
    const double *f = past->impulse;
    double along1 = 0, along2 = 0, square1 = 0, square2 = 0, mixed = 0;
    for (int i = 0; i < 3; i++) {
        const double t1 = (double)tb_v3_at(c->tangent1, i), t2 = (double)tb_v3_at(c->tangent2, i);
        const double slip = f[1] * past->tangent1[i] + f[2] * past->tangent2[i];
        along1 += slip * t1, along2 += slip * t2;
        square1 += t1 * t1, square2 += t2 * t2, mixed += t1 * t2;
    }
    const double size = square1 * square2 - mixed * mixed; /* near one */
    tb_world_put_warm(w, row + 1, (square2 * along1 - mixed * along2) / size);
    tb_world_put_warm(w, row + 2, (square1 * along2 - mixed * along1) / size);
}

TB_STATIC void warm_start(const tb_world_contact *c, const directions *k, const contact_past *past,
                          const tb_world *w, int32_t row)
{
    for (int32_t n = past->rows == 0 ? 0 : 3; n < k->rows; n++) tb_world_put_warm(w, row + n, 0);
    if (past->rows == 0) return;
    const double *t1 = past->tangent1, *t2 = past->tangent2, *f = past->impulse;
    tb_real *warm = w->warm + row;
    tb_world_put_warm(w, row, f[0]);
    if (k->rows > 1 && w->fine) {
        keep_friction(w, c, past, row);
    } else if (k->rows > 1) {
        const tb_vec3 s = tb_contact_slip(t1, t2, f[1], f[2]);
        warm[1] = tb_v3_dot(s, c->tangent1);
        warm[2] = tb_v3_dot(s, c->tangent2);
    }
    if (k->rows <= 3) return;
    const double *angular = past->record->impulse + 3;
    if (k->spin > 0) warm[3] = TB_R(angular[0]) / k->spin;
    if (k->rows > 4 && k->rolling > 0) {
        const tb_vec3 r = tb_contact_slip(t1, t2, angular[1], angular[2]);
        warm[4] = tb_v3_dot(r, c->tangent1) / k->rolling;
        warm[5] = tb_v3_dot(r, c->tangent2) / k->rolling;
    }
}

/* Fills the draft of a contact. */
TB_STATIC void draft_record(const tb_world_contact *c, const directions *k, const tb_real bias[3],
                            const contact_past *past, tb_contact_record *r)
{
    const bool is_known = past->rows == k->rows;
    r->shape_a = c->shape_a;
    r->shape_b = c->shape_b;
    r->feature = c->feature;
    tb_v3_store(r->position, c->position);
    tb_v3_store(r->normal, c->normal);
    tb_v3_store(r->tangent1, c->tangent1);
    tb_v3_store(r->tangent2, c->tangent2);
    r->gap = (double)c->gap;
    r->draft = TB_VALUE(tb_contact_draft){{(double)bias[0], (double)bias[1], (double)bias[2]},
                                          is_known && k->rows > 1 ? past->slip_speed : 0,
                                          c->surface.spin_radius,
                                          c->surface.rolling_length};
    r->kind = k->rows;
    r->status = is_known ? past->status : (int32_t)TB_STATUS_UNKNOWN;
}

/* Reserves memory for `extra` more records; false if refused. */
TB_STATIC bool reserve_records(tb_world *w, int32_t extra)
{
    if (extra > INT32_MAX - w->number_of_contacts) return false;
    const int32_t count = w->number_of_contacts + extra;
    if (count <= w->record_capacity) return true;
    if (w->home) {
        if (tb_state_reserve_next(w->home, count) != TB_OK) return false;
        w->records = w->home->next_contacts;
        w->record_capacity = w->home->next_capacity;
        return true;
    }
    const int32_t capacity = count < INT32_MAX / 2 ? count + count / 2 : count;
    tb_contact_record *grown = TB_ARENA_ARRAY(w->arena, tb_contact_record, capacity);
    if (!grown) return false;
    if (w->number_of_contacts)
        memcpy(grown, w->records, (size_t)w->number_of_contacts * sizeof *grown);
    w->records = grown;
    w->record_capacity = capacity;
    return true;
}

/* Motion of a conveying surface relative to its shape at a point: the part tangential to a
 * contact of this normal, and the spin about the normal. */
TB_STATIC tb_motion surface_motion(const tb_world *w, int32_t index, tb_vec3 point, tb_vec3 normal)
{
    const tb_model_shape *shape = &w->model->shapes[index];
    const tb_pose *body = &w->dynamics.poses[shape->body];
    const double *v = shape->surface_velocity, *r = shape->rotation;
    tb_vec3 local[2];
    for (int k = 0; k < 2; k++, v += 3)
        local[k] = tb_v3(TB_R(r[0] * v[0] + r[1] * v[1] + r[2] * v[2]),
                         TB_R(r[3] * v[0] + r[4] * v[1] + r[5] * v[2]),
                         TB_R(r[6] * v[0] + r[7] * v[1] + r[8] * v[2]));
    const tb_vec3 at =
        tb_v3(TB_R(shape->position[0]), TB_R(shape->position[1]), TB_R(shape->position[2]));
    const tb_vec3 arm = tb_v3_sub(point, tb_pose_point(body, at));
    const tb_vec3 spin = tb_m33_mul_v3(&body->rotation, local[1]);
    const tb_vec3 velocity =
        tb_v3_add(tb_m33_mul_v3(&body->rotation, local[0]), tb_v3_cross(spin, arm));
    tb_motion motion;
    motion.linear = tb_v3_add_scaled(velocity, normal, -tb_v3_dot(normal, velocity));
    motion.angular = tb_v3_scale(normal, tb_v3_dot(normal, spin));
    return motion;
}

/* W of a contact on the given chains. Returns the normal velocity before the step; *given: the
 * velocity prescribed by kinematic bodies and conveying surfaces. */
TB_STATIC tb_real fill_contact(const tb_world *w, const tb_chains *chains,
                               const tb_world_contact *c, const directions *k, tb_real *values,
                               tb_motion *given)
{
    fill_rows(w, chains, c, k, values);
    const tb_motion of_b = tb_prescribed_motion(w, c->body_b, c->position);
    *given = tb_motion_add_scaled(of_b, tb_prescribed_motion(w, c->body_a, c->position), -1);
    const tb_model_shape *shapes = w->model->shapes;
    if (shapes[c->shape_b].conveys)
        *given =
            tb_motion_add_scaled(*given, surface_motion(w, c->shape_b, c->position, c->normal), 1);
    if (shapes[c->shape_a].conveys)
        *given =
            tb_motion_add_scaled(*given, surface_motion(w, c->shape_a, c->position, c->normal), -1);
    return tb_block_dot(chains, values, w->u) + tb_v3_dot(c->normal, given->linear);
}

/* A motion of doubles: its spin, and the velocity at a point. */
typedef struct free_motion {
    double spin[3], velocity[3];
} free_motion;

/* Velocity by u_free of the body on a side of a contact, at its point. */
TB_STATIC free_motion free_motion_of(const tb_world *w, const tb_chains *chains,
                                     const tb_world_contact *c, int s)
{
    const tb_model *m = w->model;
    const int32_t body = s ? c->body_b : c->body_a, index = m->bodies[body].tree;
    const tb_model_tree *tree = &m->trees[index];
    double spin_x = 0, spin_y = 0, spin_z = 0, x = 0, y = 0, z = 0;
    if (tree->single_free) {
        const tb_real *u = w->u_free + tree->dof, *rotation = w->dynamics.poses[body].rotation.m;
        for (int j = 0; j < 3; j++) {
            spin_x += (double)rotation[j] * (double)u[3 + j];
            spin_y += (double)rotation[3 + j] * (double)u[3 + j];
            spin_z += (double)rotation[6 + j] * (double)u[3 + j];
        }
        x = (double)u[0], y = (double)u[1], z = (double)u[2];
    }
    chain_column at = {-1, -1, 0, 0};
    if (!tree->single_free) at = column_at(chains, chains->heads[s]);
    while (at.side != 0) { /* from 0 up both sides move alike */
        const tb_motion axis = w->dynamics.axes[at.dof];
        const double u = (double)w->u_free[at.dof];
        at = column_above(chains, at);
        spin_x += u * (double)axis.angular.x, x += u * (double)axis.linear.x;
        spin_y += u * (double)axis.angular.y, y += u * (double)axis.linear.y;
        spin_z += u * (double)axis.angular.z, z += u * (double)axis.linear.z;
    }

    /* from the tree's reference to the point */
    const tb_vec3 from = w->dynamics.references[index];
    const double arm_x = (double)c->position.x - (double)from.x;
    const double arm_y = (double)c->position.y - (double)from.y;
    const double arm_z = (double)c->position.z - (double)from.z;
    x += spin_y * arm_z - spin_z * arm_y;
    y += spin_z * arm_x - spin_x * arm_z;
    z += spin_x * arm_y - spin_y * arm_x;
    return TB_VALUE(free_motion){{spin_x, spin_y, spin_z}, {x, y, z}};
}

TB_STATIC double along_of(tb_vec3 direction, const double v[3])
{
    return (double)direction.x * v[0] + (double)direction.y * v[1] + (double)direction.z * v[2];
}

/* Adds W_row . u_free of each row over the dofs of a side. */
TB_STATIC void add_free_speeds(const tb_world *w, const tb_world_contact *c, const directions *k,
                               const tb_chains *chains, int s, double speeds[TB_BLOCK_ROWS])
{
    const free_motion motion = free_motion_of(w, chains, c, s);
    for (int32_t n = 0; n < TB_BLOCK_ROWS; n++) {
        if (n >= k->rows) continue;
        const double scale = (double)scale_at(k, n);
        speeds[n] += (s ? 1 : -1) * scale *
                     along_of(direction_at(c, n), n < 3 ? motion.velocity : motion.spin);
    }
}

/* A normal along which neither body can move: m/s for unit velocity of a dof, and the share of the
 * tangents' largest number below which the value is rounding. Impulses along such a normal would
 * have no effect except to permit any friction. */
#define UNREACHABLE_M     tb_max((tb_real)1e-9, 8 * TB_REAL_EPSILON)
#define UNREACHABLE_SHARE tb_sqrt(TB_REAL_EPSILON)
/* A tangent's number is an arm's length, and no arm is longer (m). */
#define LONGEST_ARM 1e5

/* Two links that overlap along the axis of the joint between them are such a pair. */
TB_STATIC bool is_unreachable(const tb_chains *chains, const directions *k, const tb_real *values)
{
    const int32_t width = chains->width;
    tb_real normal = 0, tangents = 0;
    TB_UNROLLED
    for (int32_t i = 0; i < width; i++) normal = tb_max(normal, tb_abs(values[i]));
    if (normal > UNREACHABLE_SHARE * TB_R(LONGEST_ARM)) return false;
    if (normal <= UNREACHABLE_M) return true;
    if (k->linear < 3) return false;
    TB_UNROLLED
    for (int32_t i = width; i < 3 * width; i++) tangents = tb_max(tangents, tb_abs(values[i]));
    return normal <= UNREACHABLE_SHARE * tangents;
}

/* Makes a contact's rows such that no impulse satisfies or violates them. */
TB_STATIC void drop_rows(const tb_world *w, const tb_chains *chains, const directions *k,
                         tb_real *values, int32_t row)
{
    for (int32_t i = 0; i < k->rows * chains->width; i++) values[i] = 0;
    for (int32_t n = 0; n < k->rows; n++) {
        w->c[row + n] = w->driven[row + n] = 0;
        tb_world_put_warm(w, row + n, 0);
    }
}

/* Adds the terms of tangential restitution to c. bias: of the rows, receives them. */
TB_STATIC void add_tangential(const tb_world *w, const tb_chains *chains, const tb_world_contact *c,
                              const directions *k, const tb_contact_timing *timing, tb_real before,
                              const tb_real *values, int32_t row, tb_real bias[3])
{
    for (int32_t n = 1; n < 3; n++) {
        if (n >= k->linear) continue;
        const tb_real along =
            tb_block_dot(chains, values + n * chains->width, w->u) + w->driven[row + n];
        bias[n] = tb_contact_tangential_bias(timing, c->gap, &c->surface, before, along);
        w->c[row + n] += bias[n];
    }
}

/* All else but whitening: the numbers of the block and of its rows from `row` on, its start, its record. As far
 * as it can it reads before it writes, because a read behind a write begins only when that is done. */
TB_STATIC void finish_contact(const tb_world *w, const tb_chains *chains, const tb_world_contact *c,
                              const directions *k, const tb_contact_timing *timing,
                              const tb_motion *given, tb_real before, tb_real *values, int32_t row,
                              const contact_past *past, tb_block *block, tb_contact_record *record)
{
    double speeds[TB_BLOCK_ROWS] = {0};
    tb_real bias[3] = {tb_contact_bias(timing, c->gap, TB_R(c->surface.restitution), before), 0, 0};
    const bool unreachable = is_unreachable(chains, k, values);
    warm_start(c, k, past, w, row);
    TB_ROLLED
    for (int s = 0; s < 2; s++)
        if (chains->heads[s] >= 0) add_free_speeds(w, c, k, chains, s, speeds);
    for (int32_t n = 0; n < TB_BLOCK_ROWS; n++) {
        if (n >= k->rows) continue;
        const tb_vec3 chi = n < 3 ? given->linear : given->angular;
        const tb_real driven = scale_at(k, n) * tb_v3_dot(direction_at(c, n), chi);
        const tb_real free_velocity = TB_R(speeds[n] + (double)driven);
        w->c[row + n] = n == 0 ? free_velocity + bias[0] : free_velocity;
        w->driven[row + n] = driven;
    }
    if (c->surface.tangential_restitution > 0)
        add_tangential(w, chains, c, k, timing, before, values, row, bias);
    block->mu = TB_R(c->surface.friction);
    w->gaps[row] = c->gap;
    w->recovery[row] = tb_contact_recovery(timing, c->gap, bias[0]);
    if (unreachable) drop_rows(w, chains, k, values, row);
    draft_record(c, k, bias, past, record);
}

TB_EXTERN bool tb_contacts_add(tb_world *world, const tb_world_contact *contact,
                               const tb_contact_point *points, int32_t count)
{
    tb_world *w = world;
    const tb_world_contact *c = contact;
    const tb_model *m = w->model;
    const tb_law law = tb_contact_law(&c->surface);
    const directions k = directions_of(c, law);
    const int32_t leaves[2] = {m->bodies[c->body_a].last_dof, m->bodies[c->body_b].last_dof};
    tb_real *values = tb_block_begin(w, law, k.rows, leaves, 2, -1);
    if (!values || !reserve_records(w, 1)) return false;
    if (w->chains.width == 0) { /* neither side can move */
        tb_block_cancel(w);
        return true;
    }
    tb_motion given;
    const tb_real before = fill_contact(w, &w->chains, c, &k, values, &given);
    const tb_contact_timing timing = tb_contact_timing_of(w->options, w->dt, w->theta);
    if (moreau_skips(w, &timing, c, before)) {
        tb_block_cancel(w);
        return true;
    }
    tb_block *block = &w->blocks[w->number_of_blocks - 1];
    const tb_contact_record *last = find_record(w->state, c, &w->record_from);
    if (!last) last = near_record(w->state, c, points, count, w->record_from);
    const contact_past past = past_of(last);
    finish_contact(w, &w->chains, c, &k, &timing, &given, before, values, block->row, &past, block,
                   &w->records[w->number_of_contacts++]);
    tb_block_end(w, values);
    w->deepest = tb_max(w->deepest, -c->gap);
    return true;
}

#ifndef TB_DEVICE
/* ---- contacts of elements ---- */

/* Adds the rows of a point that moves with a body, times `share`. Angular rows: of the body's spin. */
TB_STATIC void add_point(const tb_world *w, const tb_chains *chains, const tb_world_contact *c,
                         const directions *k, int32_t rows, int32_t body, tb_vec3 point,
                         tb_real share, tb_real *values)
{
    const tb_model *m = w->model;
    const int32_t width = chains->width, tree = m->bodies[body].tree;
    if (m->bodies[body].last_dof < 0) return;
    if (m->trees[tree].single_free) {
        tb_world_contact at = *c;
        directions own = *k;
        at.position = point;
        own.rows = rows;
        fill_single_free(w, &at, &own, body, share, width,
                         values + tb_block_position(chains, m->trees[tree].dof));
        return;
    }
    const tb_vec3 r = tb_v3_sub(point, w->dynamics.references[tree]);
    for (int32_t dof = m->bodies[body].last_dof; dof >= 0; dof = m->dofs[dof].parent) {
        const tb_motion axis = w->dynamics.axes[dof];
        const tb_vec3 v = tb_motion_at(axis, r);
        tb_real *value = values + tb_block_position(chains, dof);
        for (int32_t n = 0; n < rows; n++)
            value[n * width] +=
                share * scale_at(k, n) * tb_v3_dot(direction_at(c, n), n < 3 ? v : axis.angular);
    }
}

/* The rows of a side that is an element, and the velocity *given to it by kinematic bodies. */
TB_STATIC void fill_element(const tb_world *w, const tb_world_contact *c,
                            const tb_element_side *element, const directions *k, tb_real side,
                            tb_real *values, tb_motion *given)
{
    for (int32_t i = 0; i < element->corners; i++) {
        const tb_real share = side * element->weights[i];
        add_point(w, &w->chains, c, k, k->linear, element->bodies[i], element->at[i], share,
                  values);
        const tb_motion moved = tb_prescribed_motion(w, element->bodies[i], element->at[i]);
        given->linear = tb_v3_add_scaled(given->linear, moved.linear, share);
    }
}

/* The same of a side that is a shape, whose surface may convey. */
TB_STATIC void fill_shape(const tb_world *w, const tb_world_contact *c, const directions *k, int s,
                          tb_real side, tb_real *values, tb_motion *given)
{
    const int32_t body = s ? c->body_b : c->body_a, shape = s ? c->shape_b : c->shape_a;
    add_point(w, &w->chains, c, k, k->rows, body, c->position, side, values);
    *given = tb_motion_add_scaled(*given, tb_prescribed_motion(w, body, c->position), side);
    if (w->model->shapes[shape].conveys)
        *given =
            tb_motion_add_scaled(*given, surface_motion(w, shape, c->position, c->normal), side);
}

TB_EXTERN bool tb_contacts_add_element(tb_world *world, const tb_world_contact *contact,
                                       const tb_element_side *const elements[2])
{
    tb_world *w = world;
    const tb_world_contact *c = contact;
    const tb_model *m = w->model;
    const tb_law law = tb_contact_law(&c->surface);
    const directions k = directions_of(c, law);
    int32_t leaves[6] = {-1, -1, -1, -1, -1, -1};
    for (int s = 0; s < 2; s++) {
        const tb_element_side *e = elements[s];
        if (!e) leaves[3 * s] = m->bodies[s ? c->body_b : c->body_a].last_dof;
        for (int32_t i = 0; e && i < e->corners; i++)
            leaves[3 * s + i] = m->bodies[e->bodies[i]].last_dof;
    }
    tb_real *values = tb_block_begin(w, law, k.rows, leaves, 6, -1);
    if (!values || !reserve_records(w, 1)) return false;
    const int32_t width = w->chains.width;
    if (width == 0) {
        tb_block_cancel(w);
        return true;
    }
    tb_motion given = tb_motion_zero();
    for (int s = 0; s < 2; s++) {
        const tb_real side = s ? TB_R(1) : TB_R(-1);
        if (elements[s])
            fill_element(w, c, elements[s], &k, side, values, &given);
        else
            fill_shape(w, c, &k, s, side, values, &given);
    }
    const tb_real before =
        tb_block_dot(&w->chains, values, w->u) + tb_v3_dot(c->normal, given.linear);
    const tb_contact_timing timing = tb_contact_timing_of(w->options, w->dt, w->theta);
    if (moreau_skips(w, &timing, c, before)) {
        tb_block_cancel(w);
        return true;
    }
    tb_block *block = &w->blocks[w->number_of_blocks - 1];
    const contact_past past = past_of(find_record(w->state, c, &w->record_from));
    w->chains.heads[0] = w->chains.heads[1] = -1; /* free velocities follow below */
    finish_contact(w, &w->chains, c, &k, &timing, &given, before, values, block->row, &past, block,
                   &w->records[w->number_of_contacts++]);
    for (int32_t n = 0; n < k.rows; n++) {
        double speed = 0;
        for (int32_t i = 0; i < width; i++)
            speed += (double)values[n * width + i] * (double)w->u_free[w->chains.dofs[i]];
        w->c[block->row + n] += TB_R(speed);
    }
    tb_block_end(w, values);
    w->deepest = tb_max(w->deepest, -c->gap);
    return true;
}
#endif

/* An upper bound of the rows' numbers is enough: unused memory costs nothing. */
TB_EXTERN bool tb_contacts_begin(tb_world *world, int32_t count, int32_t rows)
{
    tb_world *w = world;
    w->first_contact_block = w->number_of_blocks;
    w->contact_rows = w->number_of_rows;
    w->number_of_contacts = w->record_from = 0;
    w->deepest = 0;
    if (w->home) {
        w->records = w->home->next_contacts;
        w->record_capacity = w->home->next_capacity;
    }
    const int32_t longest = w->model->longest_chain > 6 ? w->model->longest_chain : 6;
    const int32_t all = count < INT32_MAX / TB_CONTACT_ROLLING ? count * rows : 0;
    return reserve_records(w, count) && tb_block_reserve(w, count, all, 2 * (int64_t)all * longest);
}

TB_EXTERN void tb_contacts_end(tb_world *world)
{
    const tb_world *w = world;
    if (!w->has_compliance) return;
    TB_EACH (i, w->number_of_rows - w->contact_rows) w->compliance[w->contact_rows + i] = 0;
    tb_team_sync();
}
