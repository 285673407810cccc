/* Arenas, arrays, certificates and options: see wire.h. */
#include "wire/wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are lent to the wire as they lie in memory, which must be little endian"
#endif

/* ---- scratch ---- */

enum { BLOCK_BYTES = 8192, KEPT_BYTES = 1 << 18, ALIGNMENT = 16 };

struct td_wire_block {
    struct td_wire_block *next;
    size_t used, capacity;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static struct td_wire_block *new_block(td_wire *wire, size_t bytes)
{
    size_t capacity = wire->blocks != NULL ? 2 * wire->blocks->capacity : BLOCK_BYTES;
    if (capacity < bytes) capacity = bytes;
    struct td_wire_block *block = malloc(sizeof *block + capacity);
    if (block == NULL) return NULL;
    *block = (struct td_wire_block){.next = wire->blocks, .capacity = capacity};
    wire->blocks = block;
    return block;
}

void *td_wire_take(td_wire *wire, size_t bytes)
{
    if (bytes == 0) bytes = 1; /* an address of its own */
    const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct td_wire_block *block = wire->blocks;
    if (rounded < bytes || block == NULL || block->capacity - block->used < rounded)
        block = rounded < bytes ? NULL : new_block(wire, rounded);
    if (block == NULL) {
        wire->failed = true;
        return NULL;
    }
    void *memory = block->bytes + block->used;
    block->used += rounded;
    return memset(memory, 0, bytes);
}

void td_wire_reset(td_wire *wire)
{
    /* the newest block is the largest */
    struct td_wire_block *kept = wire->blocks;
    wire->failed = false;
    if (kept == NULL) return;
    if (kept->capacity > KEPT_BYTES) {
        td_wire_destroy(wire);
        return;
    }
    td_wire rest = {.blocks = kept->next};
    td_wire_destroy(&rest);
    kept->next = NULL;
    kept->used = 0;
}

void td_wire_destroy(td_wire *wire)
{
    for (struct td_wire_block *block = wire->blocks; block != NULL;) {
        struct td_wire_block *next = block->next;
        free(block);
        block = next;
    }
    *wire = (td_wire){0};
}

/* ---- arrays ---- */

/* Bytes of an element; 0: no such type. */
static size_t element_bytes(Tribo__V1__DataType dtype)
{
    switch (dtype) {
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64:
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64: return 8;
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32:
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32: return 4;
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8: return 1;
    default: return 0;
    }
}

Tribo__V1__Array *td_wire_array(td_wire *wire, Tribo__V1__DataType dtype, const void *data,
                                int64_t rows, int64_t columns)
{
    struct {
        Tribo__V1__Array array;
        int64_t shape[2];
    } *made = td_wire_take(wire, sizeof *made);
    if (made == NULL) return NULL;
    tribo__v1__array__init(&made->array);
    made->shape[0] = rows;
    made->shape[1] = columns;
    made->array.dtype = dtype;
    made->array.shape = made->shape;
    made->array.n_shape = columns > 0 ? 2 : 1;
    made->array.data.len =
        (size_t)rows * (columns > 0 ? (size_t)columns : 1) * element_bytes(dtype);
    /* protobuf-c only reads the data that a message points at */
    made->array.data.data = (uint8_t *)(uintptr_t)data;
    return &made->array;
}

/* rows x columns, or columns alone, which apply to every row */
static tb_status check_shape(const Tribo__V1__Array *array, const char *field, int64_t rows,
                             int64_t columns, tb_error *error)
{
    const int64_t *shape = array->shape;
    if (array->n_shape == 1 && shape[0] == columns) return TB_OK;
    if (array->n_shape == 2 && shape[0] == rows && shape[1] == columns) return TB_OK;
    const long long r = (long long)rows, c = (long long)columns;
    if (array->n_shape == 1)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has the shape (%lld), expected (%lld) or (%lld, %lld)", field,
                             (long long)shape[0], c, r, c);
    if (array->n_shape == 2)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has the shape (%lld, %lld), expected (%lld) or (%lld, %lld)",
                             field, (long long)shape[0], (long long)shape[1], c, r, c);
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                         "%s has %zu axes, expected the shape (%lld) or (%lld, %lld)", field,
                         array->n_shape, c, r, c);
}

static tb_status widen(td_wire *wire, const Tribo__V1__Array *array, size_t count,
                       const double **numbers, tb_error *error)
{
    if (array->dtype != TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32 &&
        (uintptr_t)array->data.data % _Alignof(double) == 0) {
        *numbers = (const double *)(const void *)array->data.data;
        return TB_OK;
    }
    double *copy = td_wire_take(wire, count * sizeof *copy);
    if (copy == NULL) return tb_fail_memory(error, count * sizeof *copy, "an array");
    if (array->dtype == TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32)
        for (size_t i = 0; i < count; i++) {
            float x;
            memcpy(&x, array->data.data + i * sizeof x, sizeof x);
            copy[i] = (double)x;
        }
    else
        memcpy(copy, array->data.data, count * sizeof *copy);
    *numbers = copy;
    return TB_OK;
}

tb_status td_wire_read_rows(td_wire *wire, const Tribo__V1__Array *array, const char *field,
                            int64_t rows, int64_t columns, td_wire_rows *out, tb_error *error)
{
    static const double nothing = 0;
    *out = (td_wire_rows){0};
    if (array == NULL) return TB_OK;
    if (array->dtype != TRIBO__V1__DATA_TYPE__DATA_TYPE_UNSPECIFIED &&
        array->dtype != TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64 &&
        array->dtype != TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has the dtype %d, expected FLOAT64 or FLOAT32", field,
                             (int)array->dtype);
    tb_status status = check_shape(array, field, rows, columns, error);
    if (status != TB_OK) return status;

    const bool each = array->n_shape == 2;
    const size_t count = (size_t)columns * (each ? (size_t)rows : 1);
    const size_t size = array->dtype == TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32 ? 4 : 8;
    if (array->data.len != count * size)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has %zu bytes, its shape and dtype ask for %zu", field,
                             array->data.len, count * size);
    *out = (td_wire_rows){.numbers = &nothing, .stride = each ? columns : 0};
    if (count == 0) return TB_OK;
    status = widen(wire, array, count, &out->numbers, error);
    if (status != TB_OK) return status;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(out->numbers[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s: element %zu is not finite",
                                 field, i);
    return TB_OK;
}

tb_status td_wire_read_tables(td_wire *wire, const Tribo__V1__Array *array, const char *field,
                              int64_t rows, int64_t items, int64_t columns, td_wire_rows *out,
                              tb_error *error)
{
    *out = (td_wire_rows){0};
    if (array == NULL) return TB_OK;
    const size_t n = array->n_shape;
    const int64_t *shape = array->shape;
    const bool one = n == 2 && shape[0] == items && shape[1] == columns;
    const bool each = n == 3 && shape[0] == rows && shape[1] == items && shape[2] == columns;
    if (!one && !each)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has a shape of %zu axes that is neither (%lld, %lld) nor (%lld, "
                             "%lld, %lld)",
                             field, n, (long long)items, (long long)columns, (long long)rows,
                             (long long)items, (long long)columns);
    int64_t flat[2] = {rows, items * columns};
    Tribo__V1__Array view = *array;
    view.shape = each ? flat : &flat[1];
    view.n_shape = each ? 2 : 1;
    return td_wire_read_rows(wire, &view, field, rows, items * columns, out, error);
}

tb_status td_wire_read_mask(const Tribo__V1__Array *array, const char *field, int32_t worlds,
                            const uint8_t **mask, tb_error *error)
{
    *mask = NULL;
    if (array == NULL) return TB_OK;
    if (array->dtype != TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has the dtype %d, expected UINT8", field, (int)array->dtype);
    if (array->n_shape != 1 || array->shape[0] != worlds || array->data.len != (size_t)worlds)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s has %zu bytes, expected one for each of %d worlds", field,
                             array->data.len, (int)worlds);
    *mask = array->data.data;
    return TB_OK;
}

/* ---- certificates ---- */

Tribo__V1__Outcome td_wire_outcome(tb_status status)
{
    if (status == TB_OK) return TRIBO__V1__OUTCOME__OUTCOME_OK;
    return status == TB_NOT_CONVERGED ? TRIBO__V1__OUTCOME__OUTCOME_NOT_CONVERGED
                                      : TRIBO__V1__OUTCOME__OUTCOME_DIVERGED;
}

void td_wire_certificate(const tb_certificate *c, Tribo__V1__Certificate *out)
{
    tribo__v1__certificate__init(out);
    out->outcome = td_wire_outcome(c->status);
    out->step = c->step;
    out->time = c->time;
    out->residual = c->residual;
    out->penetration = c->penetration;
    out->cone_error = c->cone_error;
    out->complementarity_error = c->complementarity_error;
    out->closure_error = c->closure_error;
    out->energy = c->energy;
    out->energy_change = c->energy_change;
    out->contacts = c->contacts;
    out->rows = c->rows;
    out->iterations = c->iterations;
    out->solver = (char *)(uintptr_t)c->solver;
    out->capacity_grew = (c->flags & TB_CERTIFICATE_OVERFLOW) != 0;
    out->relaxation_halved = (c->flags & TB_CERTIFICATE_HALVED) != 0;
    out->degenerate_pair = (c->flags & TB_CERTIFICATE_DEGENERATE) != 0;
    out->known_statuses = c->known_statuses;
    out->kept_statuses = c->kept_statuses;
    out->linear_solves = c->linear_solves;
    out->factorizations = c->factorizations;
    out->resets = c->resets;
    out->energy_recovery = c->energy_recovery;
    out->energy_motors = c->energy_motors;
    out->energy_damping = c->energy_damping;
    out->energy_friction = c->energy_friction;
    out->energy_applied = c->energy_applied;
    out->energy_unexplained = c->energy_unexplained;
    out->energy_bound = c->energy_bound;
    out->asleep = c->asleep;
    out->faults = c->faults;
    out->fault_kind = (Tribo__V1__FaultKind)c->worst_fault.kind;
    out->fault_a = c->worst_fault.a;
    out->fault_b = c->worst_fault.b;
    out->fault_amount = c->worst_fault.amount;
}

Tribo__V1__Certificate **td_wire_certificates(td_wire *wire, const tb_certificate *certificates,
                                              int32_t count)
{
    const size_t n = (size_t)count;
    Tribo__V1__Certificate **pointers = td_wire_take(wire, n * sizeof *pointers);
    Tribo__V1__Certificate *messages = td_wire_take(wire, n * sizeof *messages);
    if (pointers == NULL || messages == NULL) return NULL;
    for (size_t i = 0; i < n; i++) {
        td_wire_certificate(&certificates[i], &messages[i]);
        pointers[i] = &messages[i];
    }
    return pointers;
}

/* ---- options ---- */

/* A number that is 0 (the default) or in its range; `field` and `part` name it. */
static tb_status take_number(double x, double lower, double upper, const char *field,
                             const char *part, double *into, tb_error *error)
{
    if (x == 0) return TB_OK;
    if (x >= lower && x <= upper) { /* false for NaN */
        *into = x;
        return TB_OK;
    }
    char name[TB_ERROR_NAME_SIZE];
    snprintf(name, sizeof name, "%s.%s", field, part);
    return tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                         "%s is %g, expected %g to %g, or 0 for the default", name, x, lower,
                         upper);
}

static tb_status take_solver(const char *wanted, const char *field, const char **into,
                             tb_error *error)
{
    if (wanted == NULL || *wanted == '\0') return TB_OK;
    for (int32_t i = 0; tb_solver_name(i) != NULL; i++)
        if (strcmp(tb_solver_name(i), wanted) == 0) {
            *into = tb_solver_name(i);
            return TB_OK;
        }
    /* the stepper refuses an integrator without the volume law, and a solver with it */
    for (int32_t i = 0; tb_integrator_name(i) != NULL; i++)
        if (strcmp(tb_integrator_name(i), wanted) == 0) {
            *into = tb_integrator_name(i);
            return TB_OK;
        }
    char name[TB_ERROR_NAME_SIZE];
    snprintf(name, sizeof name, "%s.solver", field);
    return tb_fail_field(error, TB_NOT_FOUND, name, "%s: there is no solver '%s'", name, wanted);
}

/* An enumeration's value; 0 selects the first choice. */
static tb_status take_choice(int value, int last, const char *field, const char *part, int *choice,
                             tb_error *error)
{
    *choice = value > 0 ? value - 1 : 0;
    if (value >= 0 && value <= last) return TB_OK;
    char name[TB_ERROR_NAME_SIZE];
    snprintf(name, sizeof name, "%s.%s", field, part);
    return tb_fail_field(error, TB_INVALID_ARGUMENT, name, "%s is %d, which has no meaning", name,
                         value);
}

tb_status td_wire_read_solve_options(const Tribo__V1__SolveOptions *message, const char *field,
                                     tb_solve_options *options, tb_error *error)
{
    *options = tb_solve_defaults();
    options->threads = 1;
    /* the library keeps its default under a name of its own */
    tb_status status = take_solver(options->solver, field, &options->solver, error);
    if (status != TB_OK || message == NULL) return status;

    double sweeps = options->maximum_iterations;
    status = take_solver(message->solver, field, &options->solver, error);
    if (status == TB_OK)
        status = take_number(message->tolerance, 1e-300, 1, field, "tolerance", &options->tolerance,
                             error);
    if (status == TB_OK)
        status = take_number(message->maximum_iterations, 1, 1e6, field, "maximum_iterations",
                             &sweeps, error);
    if (status == TB_OK)
        status = take_number(message->omega, 1e-6, 2, field, "omega", &options->omega, error);
    int colouring = 0;
    double colours = message->colours;
    if (status == TB_OK)
        status = take_choice((int)message->colouring, 3, field, "colouring", &colouring, error);
    if (status == TB_OK) status = take_number(colours, 1, 1e6, field, "colours", &colours, error);
    options->colouring = (tb_solve_colouring)colouring;
    options->colours = (int32_t)colours;
    options->maximum_iterations = (int32_t)sweeps;
    return status;
}

tb_status td_wire_read_step_options(const Tribo__V1__StepOptions *message, const char *field,
                                    tb_step_options *options, tb_error *error)
{
    char solve_field[64];
    snprintf(solve_field, sizeof solve_field, "%s.solve", field);
    *options = tb_step_defaults();
    tb_status status = td_wire_read_solve_options(message != NULL ? message->solve : NULL,
                                                  solve_field, &options->solve, error);
    if (status != TB_OK || message == NULL) return status;

    int scheme = 0, precision = 0;
    status = take_number(message->dt, 1e-9, 1, field, "dt", &options->dt, error);
    if (status == TB_OK)
        status = take_number(message->recovery_speed, 1e-9, 1e6, field, "recovery_speed",
                             &options->recovery_speed, error);
    if (status == TB_OK)
        status = take_number(message->contact_merge, 1e-9, 0.1, field, "contact_merge",
                             &options->contact_merge, error);
    if (status == TB_OK)
        status = take_choice((int)message->scheme, 4, field, "scheme", &scheme, error);
    if (status == TB_OK)
        status = take_choice((int)message->precision, 2, field, "precision", &precision, error);
    options->scheme = (tb_scheme)scheme;
    options->precision = precision == 1 ? TB_FLOAT : TB_DOUBLE;
    options->report_energy = message->report_energy;
    return status;
}

/* ---- overlaps ---- */

tb_status td_wire_read_overlaps(Tribo__V1__OverlapPolicy from, const char *field,
                                tb_overlap_policy *policy, tb_error *error)
{
    switch (from) {
    case TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_UNSPECIFIED:
    case TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_KEEP: *policy = TB_OVERLAPS_KEEP; return TB_OK;
    case TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_IGNORE:
        *policy = TB_OVERLAPS_IGNORE;
        return TB_OK;
    case TRIBO__V1__OVERLAP_POLICY__OVERLAP_POLICY_ERROR: *policy = TB_OVERLAPS_ERROR; return TB_OK;
    default:
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s is %d, expected keep, ignore or error", field, (int)from);
    }
}

Tribo__V1__Overlap **td_wire_overlaps(td_wire *wire, const tb_model *model,
                                      const tb_overlap *overlaps, int32_t count)
{
    Tribo__V1__Overlap **pointers = td_wire_take(wire, (size_t)count * sizeof *pointers);
    Tribo__V1__Overlap *messages = td_wire_take(wire, (size_t)count * sizeof *messages);
    if (pointers == NULL || messages == NULL) return NULL;
#define NAME(kind, index) (char *)(uintptr_t)tb_model_thing_name(model, TB_HANDLE_##kind, index)
    for (int32_t i = 0; i < count; i++) {
        Tribo__V1__Overlap *m = pointers[i] = &messages[i];
        const tb_overlap *o = &overlaps[i];
        tribo__v1__overlap__init(m);
        m->shape_a = NAME(SHAPE, o->shape_a);
        m->shape_b = NAME(SHAPE, o->shape_b);
        m->shape_a_index = o->shape_a;
        m->shape_b_index = o->shape_b;
        m->body_a = NAME(BODY, o->body_a);
        m->body_b = NAME(BODY, o->body_b);
        m->depth = o->depth;
        m->joints = o->joints;
        m->linked = o->linked;
        m->least_depth = o->least_depth;
        m->persists = o->persists;
    }
#undef NAME
    return pointers;
}
