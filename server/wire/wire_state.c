/* States and contacts as messages: see wire.h. The arrays of one world are borrowed in place; the
 * rows of several worlds are gathered, and narrowed if the reader asks for single precision. */
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tribo_soft.h"

enum { BODY_NUMBERS = 13, POSE_NUMBERS = 7 };

static const Tribo__V1__DataType FLOAT64 = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
static const Tribo__V1__DataType FLOAT32 = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32;

tb_status td_wire_read_want(const Tribo__V1__StepReturn *message, td_wire_want *want,
                            tb_error *error)
{
    *want = (td_wire_want){.dtype = FLOAT64};
    if (message == NULL) return TB_OK;
    want->state = message->state;
    want->contacts = message->contacts;
    want->bodies = message->bodies;
    want->poses = message->poses;
    want->forces = message->forces;
    want->arrays = message->certificate_arrays;
    want->pairs = message->n_pairs > 0;
    want->sensors = message->sensors;
    want->surfaces = message->surfaces;
    if (message->dtype == FLOAT32)
        want->dtype = FLOAT32;
    else if (message->dtype != FLOAT64 &&
             message->dtype != TRIBO__V1__DATA_TYPE__DATA_TYPE_UNSPECIFIED)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "want.dtype",
                             "want.dtype is %d, expected FLOAT64 or FLOAT32", (int)message->dtype);
    return TB_OK;
}

/* ---- states ---- */

static Tribo__V1__Array *narrow(td_wire *wire, const double *numbers, int64_t rows, int64_t columns)
{
    const size_t count = (size_t)rows * (size_t)columns;
    float *copy = td_wire_take(wire, count * sizeof *copy);
    if (copy == NULL) return NULL;
    for (size_t i = 0; i < count; i++) copy[i] = (float)numbers[i];
    return td_wire_array(wire, FLOAT32, copy, rows, columns);
}

/* gathers one part of each state as worlds x columns */
static Tribo__V1__Array *gather(td_wire *wire, tb_state *const *states, int32_t worlds,
                                const double *(*part)(const tb_state *), int32_t columns,
                                Tribo__V1__DataType dtype)
{
    const double *numbers = part(states[0]);
    if (worlds > 1) {
        const size_t row = (size_t)columns * sizeof(double);
        double *copy = td_wire_take(wire, (size_t)worlds * row);
        if (copy == NULL) return NULL;
        for (int32_t w = 0; w < worlds && columns > 0; w++)
            memcpy(copy + (size_t)w * (size_t)columns, part(states[w]), row);
        numbers = copy;
    }
    /* an axis of length 0 must show as one */
    Tribo__V1__Array *array = dtype == FLOAT32
                                  ? narrow(wire, numbers, worlds, columns)
                                  : td_wire_array(wire, FLOAT64, numbers, worlds, columns);
    if (array != NULL && columns == 0) {
        array->n_shape = 2;
        array->data.len = 0;
    }
    return array;
}

Tribo__V1__Array *td_wire_cube(td_wire *wire, Tribo__V1__Array *array, int64_t worlds, int64_t rows,
                               int64_t columns)
{
    int64_t *shape = td_wire_take(wire, 3 * sizeof *shape);
    if (array == NULL || shape == NULL) return NULL;
    shape[0] = worlds;
    shape[1] = rows;
    shape[2] = columns;
    array->shape = shape;
    array->n_shape = 3;
    return array;
}

static Tribo__V1__Array *bodies(td_wire *wire, tb_state *const *states, int32_t worlds,
                                Tribo__V1__DataType dtype)
{
    const int32_t count = tb_model_count(tb_state_model(states[0])).bodies;
    const size_t numbers = (size_t)worlds * (size_t)count * BODY_NUMBERS;
    double *all = td_wire_take(wire, numbers * sizeof *all);
    tb_body_motion *motions = td_wire_take(wire, (size_t)count * sizeof *motions);
    if (all == NULL || motions == NULL) return NULL;
    double *row = all;
    for (int32_t w = 0; w < worlds; w++) {
        if (tb_state_body_motions(states[w], motions) != TB_OK) {
            wire->failed = true;
            return NULL;
        }
        for (int32_t b = 0; b < count; b++, row += BODY_NUMBERS) {
            memcpy(row, motions[b].position, 3 * sizeof *row);
            memcpy(row + 3, motions[b].orientation, 4 * sizeof *row);
            memcpy(row + 7, motions[b].linear_velocity, 3 * sizeof *row);
            memcpy(row + 10, motions[b].angular_velocity, 3 * sizeof *row);
        }
    }
    const int64_t rows = (int64_t)worlds * count;
    Tribo__V1__Array *array = dtype == FLOAT32
                                  ? narrow(wire, all, rows, BODY_NUMBERS)
                                  : td_wire_array(wire, FLOAT64, all, rows, BODY_NUMBERS);
    return td_wire_cube(wire, array, worlds, count, BODY_NUMBERS);
}

static Tribo__V1__Array *poses(td_wire *wire, tb_state *const *states, int32_t worlds)
{
    const int32_t count = tb_model_count(tb_state_model(states[0])).bodies;
    float *all = td_wire_take(wire, (size_t)worlds * (size_t)count * POSE_NUMBERS * sizeof *all);
    tb_body_motion *motions = td_wire_take(wire, (size_t)count * sizeof *motions);
    if (all == NULL || motions == NULL) return NULL;
    float *row = all;
    for (int32_t w = 0; w < worlds; w++) {
        if (tb_state_body_motions(states[w], motions) != TB_OK) {
            wire->failed = true;
            return NULL;
        }
        for (int32_t b = 0; b < count; b++, row += POSE_NUMBERS) {
            for (int k = 0; k < 3; k++) row[k] = (float)motions[b].position[k];
            for (int k = 0; k < 4; k++) row[3 + k] = (float)motions[b].orientation[k];
        }
    }
    return td_wire_cube(wire,
                        td_wire_array(wire, FLOAT32, all, (int64_t)worlds * count, POSE_NUMBERS),
                        worlds, count, POSE_NUMBERS);
}

/* worlds x columns numbers, each by a function of the state and the column */
static Tribo__V1__Array *tabulate(td_wire *wire, tb_state *const *states, int32_t worlds,
                                  int32_t columns, double (*entry)(const tb_state *, int32_t),
                                  double scale)
{
    double *all = td_wire_take(wire, (size_t)worlds * (size_t)columns * sizeof *all);
    if (all == NULL) return NULL;
    for (int32_t w = 0; w < worlds; w++)
        for (int32_t i = 0; i < columns; i++)
            all[(size_t)w * (size_t)columns + (size_t)i] = scale * entry(states[w], i);
    Tribo__V1__Array *array = td_wire_array(wire, FLOAT64, all, worlds, columns);
    if (array != NULL && columns == 0) {
        array->n_shape = 2;
        array->data.len = 0;
    }
    return array;
}

static Tribo__V1__Array *sensors(td_wire *wire, tb_state *const *states, int32_t worlds,
                                 int32_t columns, double dt)
{
    const size_t row = (size_t)columns;
    double *all = td_wire_take(wire, (size_t)worlds * row * sizeof *all);
    if (all == NULL) return NULL;
    for (int32_t w = 0; w < worlds; w++)
        if (tb_state_sensors(states[w], dt, all + (size_t)w * row, NULL) != TB_OK) {
            wire->failed = true;
            return NULL;
        }
    Tribo__V1__Array *array = td_wire_array(wire, FLOAT64, all, worlds, columns);
    if (array != NULL && columns == 0) {
        array->n_shape = 2;
        array->data.len = 0;
    }
    return array;
}

/* ---- soft bodies ---- */

static void *copy(td_wire *wire, const void *from, size_t bytes)
{
    void *made = td_wire_take(wire, bytes);
    if (made != NULL && bytes > 0) memcpy(made, from, bytes);
    return made;
}

static Tribo__V1__Array *numbers(td_wire *wire, const double *from, int64_t rows, int64_t columns,
                                 Tribo__V1__DataType dtype)
{
    const size_t count = (size_t)rows * (size_t)(columns > 0 ? columns : 1);
    if (dtype == FLOAT32) {
        Tribo__V1__Array *array = narrow(wire, from, 1, (int64_t)count);
        const float *data = array != NULL ? (const float *)(const void *)array->data.data : NULL;
        return td_wire_array(wire, FLOAT32, data, rows, columns);
    }
    return td_wire_array(wire, FLOAT64, copy(wire, from, count * sizeof *from), rows, columns);
}

static void fill_surface(td_wire *wire, tb_soft_world *world, int32_t body,
                         Tribo__V1__DataType dtype, Tribo__V1__Surface *out)
{
    tb_soft_surface s;
    tribo__v1__surface__init(out);
    if (tb_soft_world_surface(world, body, &s, NULL) != TB_OK) {
        wire->failed = true;
        return;
    }
    out->body = (char *)(uintptr_t)tb_soft_world_body_name(world, body);
    out->vertices = numbers(wire, s.vertices, s.number_of_vertices, 3, dtype);
    out->pressures = numbers(wire, s.pressure, s.number_of_triangles, 0, dtype);
    const size_t bytes = 3 * (size_t)s.number_of_triangles * sizeof *s.triangles;
    out->triangles = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32,
                                   copy(wire, s.triangles, bytes), s.number_of_triangles, 3);
    free(s.vertices);
    free(s.triangles);
    free(s.pressure);
}

static void fill_soft_certificate(const tb_soft_certificate *c, double vectors[6],
                                  Tribo__V1__SoftCertificate *out)
{
    tribo__v1__soft_certificate__init(out);
    memcpy(vectors, c->momentum, sizeof c->momentum);
    memcpy(vectors + 3, c->angular, sizeof c->angular);
    out->substeps = c->substeps;
    out->courant = c->courant;
    out->wave = c->wave;
    out->smallest_volume = c->smallest_volume;
    out->kinetic = c->kinetic;
    out->elastic = c->elastic;
    out->potential = c->potential;
    out->damped = c->damped;
    out->contact_work = c->contact_work;
    out->momentum = vectors;
    out->angular_momentum = vectors + 3;
    out->n_momentum = out->n_angular_momentum = 3;
    out->momentum_error = c->momentum_error;
    out->contacts = c->contacts;
    out->projections = c->projections;
    out->normal_residual = c->normal.residual;
    out->friction_residual = c->tangential.residual;
    out->cone_error = c->cone_error;
    out->penetration = c->penetration;
    out->prediction_error = c->prediction_error;
    out->fallbacks = c->normal.fallbacks + c->tangential.fallbacks;
}

/* A certificate a world, and the surfaces if they are wanted. */
static void fill_soft(td_wire *wire, tb_state *const *states, int32_t worlds, td_wire_want want,
                      Tribo__V1__State *out)
{
    tb_soft_info info;
    const size_t n = (size_t)worlds;
    if (tb_state_soft_world(states[0]) == NULL) return;
    tb_soft_world_info(tb_state_soft_world(states[0]), &info);
    Tribo__V1__SoftCertificate *certificates = td_wire_take(wire, n * sizeof *certificates);
    double *vectors = td_wire_take(wire, n * 6 * sizeof *vectors);
    out->soft_certificates = td_wire_take(wire, n * sizeof *out->soft_certificates);
    const size_t count = want.surfaces ? n * (size_t)info.bodies : 0;
    Tribo__V1__Surface *surfaces = td_wire_take(wire, count * sizeof *surfaces);
    out->surfaces = td_wire_take(wire, count * sizeof *out->surfaces);
    if (certificates == NULL || vectors == NULL || out->soft_certificates == NULL ||
        surfaces == NULL || out->surfaces == NULL)
        return;
    for (size_t w = 0; w < n; w++) {
        tb_soft_certificate c;
        tb_state_soft_certificate(states[w], &c);
        fill_soft_certificate(&c, vectors + 6 * w, &certificates[w]);
        out->soft_certificates[w] = &certificates[w];
    }
    out->n_soft_certificates = n;
    for (size_t i = 0; i < count && !wire->failed; i++) {
        tb_soft_world *world = tb_state_soft_world(states[i / (size_t)info.bodies]);
        fill_surface(wire, world, (int32_t)(i % (size_t)info.bodies), want.dtype, &surfaces[i]);
        out->surfaces[i] = &surfaces[i];
    }
    out->n_surfaces = count;
}

Tribo__V1__State *td_wire_state(td_wire *wire, tb_state *const *states, int32_t worlds,
                                td_wire_want want)
{
    Tribo__V1__State *state = td_wire_take(wire, sizeof *state);
    if (state == NULL) return NULL;
    tribo__v1__state__init(state);
    state->time = tb_state_time(states[0]);
    state->steps = tb_state_steps(states[0]);
    const tb_model_counts counts = tb_model_count(tb_state_model(states[0]));
    if (want.state) {
        state->q = gather(wire, states, worlds, tb_state_q, counts.coordinates, want.dtype);
        state->u = gather(wire, states, worlds, tb_state_u, counts.dofs, want.dtype);
    }
    if (want.controls)
        state->controls =
            gather(wire, states, worlds, tb_state_controls, counts.actuators, FLOAT64);
    if (want.bodies) state->bodies = bodies(wire, states, worlds, want.dtype);
    if (want.poses) state->poses = poses(wire, states, worlds);
    if (want.forces && want.dt > 0) {
        state->actuator_forces =
            tabulate(wire, states, worlds, counts.actuators, tb_state_actuator_force, 1);
        state->limit_forces =
            tabulate(wire, states, worlds, counts.joints, tb_state_limit_impulse, 1 / want.dt);
    }
    if (want.sensors && want.dt > 0)
        state->sensors = sensors(wire, states, worlds, counts.sensor_numbers, want.dt);
    fill_soft(wire, states, worlds, want, state);
    return wire->failed ? NULL : state;
}

/* ---- contacts ---- */

/* Columns of one world's contacts, taken together. */
typedef struct columns {
    int32_t (*shapes)[2];
    int64_t *features;
    double (*positions)[3], (*normals)[3], *gaps, (*impulses)[6], (*velocities)[3], (*tangents)[6];
    double (*forces)[3];
    uint8_t *statuses, *laws;
} columns;

static columns take_columns(td_wire *wire, size_t n)
{
    columns c = {.shapes = td_wire_take(wire, n * sizeof *c.shapes),
                 .features = td_wire_take(wire, n * sizeof *c.features),
                 .positions = td_wire_take(wire, n * sizeof *c.positions),
                 .normals = td_wire_take(wire, n * sizeof *c.normals),
                 .gaps = td_wire_take(wire, n * sizeof *c.gaps),
                 .impulses = td_wire_take(wire, n * sizeof *c.impulses),
                 .velocities = td_wire_take(wire, n * sizeof *c.velocities),
                 .tangents = td_wire_take(wire, n * sizeof *c.tangents),
                 .forces = td_wire_take(wire, n * sizeof *c.forces),
                 .statuses = td_wire_take(wire, n * sizeof *c.statuses),
                 .laws = td_wire_take(wire, n * sizeof *c.laws)};
    return c;
}

Tribo__V1__ContactStatus td_wire_contact_status(tb_contact_status status)
{
    switch (status) {
    case TB_CONTACT_STICK: return TRIBO__V1__CONTACT_STATUS__CONTACT_STATUS_STICK;
    case TB_CONTACT_SLIP: return TRIBO__V1__CONTACT_STATUS__CONTACT_STATUS_SLIP;
    default: return TRIBO__V1__CONTACT_STATUS__CONTACT_STATUS_OPEN;
    }
}

/* The kinds' numbers are those of the wire. */
static uint8_t contact_law(tb_contact_kind kind)
{
    return (uint8_t)kind;
}

static void fill_columns(const tb_state *state, int32_t n, columns c, double dt)
{
    for (int32_t i = 0; i < n; i++) {
        tb_contact_info info;
        if (tb_state_contact(state, i, &info) != TB_OK) return;
        c.shapes[i][0] = info.shape_a;
        c.shapes[i][1] = info.shape_b;
        memcpy(&c.features[i], &info.feature, sizeof info.feature);
        memcpy(c.positions[i], info.position, sizeof info.position);
        memcpy(c.normals[i], info.normal, sizeof info.normal);
        c.gaps[i] = info.gap;
        memcpy(c.impulses[i], info.impulse, sizeof info.impulse);
        memcpy(c.velocities[i], info.velocity, sizeof info.velocity);
        memcpy(c.tangents[i], info.tangent1, sizeof info.tangent1);
        memcpy(c.tangents[i] + 3, info.tangent2, sizeof info.tangent2);
        c.statuses[i] = (uint8_t)td_wire_contact_status(info.status);
        c.laws[i] = contact_law(info.kind);
        for (int k = 0; k < 3 && dt > 0; k++)
            c.forces[i][k] =
                (info.impulse[0] * info.normal[k] + info.impulse[1] * info.tangent1[k] +
                 info.impulse[2] * info.tangent2[k]) /
                dt;
    }
}

static void world_contacts(td_wire *wire, const tb_state *state, td_wire_want want,
                           Tribo__V1__Contacts *out)
{
    tribo__v1__contacts__init(out);
    const int32_t n = tb_state_number_of_contacts(state);
    const columns c = take_columns(wire, (size_t)n);
    if (wire->failed) return;
    fill_columns(state, n, c, want.dt);
    out->count = n;
    out->shapes = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32, c.shapes, n, 2);
    out->features = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64, c.features, n, 0);
    out->positions = td_wire_array(wire, FLOAT64, c.positions, n, 3);
    out->normals = td_wire_array(wire, FLOAT64, c.normals, n, 3);
    out->gaps = td_wire_array(wire, FLOAT64, c.gaps, n, 0);
    out->impulses = td_wire_array(wire, FLOAT64, c.impulses, n, 6);
    out->velocities = td_wire_array(wire, FLOAT64, c.velocities, n, 3);
    out->statuses = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8, c.statuses, n, 0);
    out->tangents = td_wire_array(wire, FLOAT64, c.tangents, n, 6);
    if (!want.forces) return;
    out->forces = td_wire_array(wire, FLOAT64, c.forces, n, 3);
    out->laws = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8, c.laws, n, 0);
}

Tribo__V1__Contacts **td_wire_contacts(td_wire *wire, tb_state *const *states, int32_t worlds,
                                       td_wire_want want)
{
    const size_t n = (size_t)worlds;
    Tribo__V1__Contacts **pointers = td_wire_take(wire, n * sizeof *pointers);
    Tribo__V1__Contacts *messages = td_wire_take(wire, n * sizeof *messages);
    if (pointers == NULL || messages == NULL) return NULL;
    for (size_t w = 0; w < n && !wire->failed; w++) {
        world_contacts(wire, states[w], want, &messages[w]);
        pointers[w] = &messages[w];
    }
    return wire->failed ? NULL : pointers;
}

size_t td_wire_world_bytes(const tb_state *state, td_wire_want want)
{
    /* a packed certificate; a packed contact with the heads of its arrays */
    enum { CERTIFICATE = 128, CONTACTS_HEAD = 128, CONTACT = 2 * 4 + 8 + 8 * 22 + 1 };
    enum { FORCE_AND_LAW = 3 * 8 + 1, SOFT_CERTIFICATE = 256 };
    const tb_model_counts counts = tb_model_count(tb_state_model(state));
    const size_t number = want.dtype == FLOAT32 ? sizeof(float) : sizeof(double);
    size_t bytes = CERTIFICATE;
    if (want.state) bytes += (size_t)(counts.coordinates + counts.dofs) * number;
    if (want.controls) bytes += (size_t)counts.actuators * sizeof(double);
    if (want.bodies) bytes += (size_t)counts.bodies * BODY_NUMBERS * number;
    if (want.contacts)
        bytes += CONTACTS_HEAD + (size_t)tb_state_number_of_contacts(state) *
                                     (size_t)(CONTACT + (want.forces ? FORCE_AND_LAW : 0));
    if (want.poses) bytes += (size_t)counts.bodies * POSE_NUMBERS * sizeof(float);
    if (want.sensors) bytes += (size_t)counts.sensor_numbers * sizeof(double);
    const tb_soft_world *soft = tb_state_soft_world(state);
    if (soft != NULL) bytes += SOFT_CERTIFICATE;
    if (soft != NULL && want.surfaces) bytes += tb_soft_world_surface_bytes(soft, number);
    if (want.forces) bytes += (size_t)(counts.actuators + counts.joints) * sizeof(double);
    if (want.evaluations) bytes += td_wire_evaluations_bytes(state, number);
    return bytes;
}
