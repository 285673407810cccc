/* Prints numbers and texts as JSON. See json.h. */
#include "common/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *json_finite(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_vector(const double *values, int32_t count)
{
    json_t *array = json_array();
    for (int32_t i = 0; i < count; i++) json_array_append_new(array, json_finite(values[i]));
    return array;
}

json_t *json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string != NULL) return string;

    char *clean = strdup(text);
    if (clean == NULL) return json_null();
    for (char *c = clean; *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    string = json_string(clean);
    free(clean);
    return string != NULL ? string : json_null();
}

static json_t *json_flags(uint32_t flags)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } NAMES[] = {
        {TB_CERTIFICATE_NOT_CONVERGED, "NOT_CONVERGED"}, {TB_CERTIFICATE_DIVERGED, "DIVERGED"},
        {TB_CERTIFICATE_OVERFLOW, "OVERFLOW"},           {TB_CERTIFICATE_HALVED, "HALVED"},
        {TB_CERTIFICATE_DEGENERATE, "DEGENERATE"},       {TB_CERTIFICATE_INFEASIBLE, "INFEASIBLE"}};
    json_t *array = json_array();
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (flags & NAMES[i].bit) json_array_append_new(array, json_string(NAMES[i].name));
    return array;
}

static json_t *json_fault(const tb_fault *fault)
{
    static const char *const KINDS[] = {"NONE", "OVERLAP", "JOINT_LIMIT", "TENDON_LIMIT",
                                        "EQUALITY"};
    if (fault->kind <= TB_FAULT_NONE || fault->kind > TB_FAULT_EQUALITY) return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(KINDS[fault->kind]));
    json_object_set_new(object, "a", json_integer(fault->a));
    json_object_set_new(object, "b", json_integer(fault->b));
    json_object_set_new(object, "amount", json_finite(fault->amount));
    return object;
}

json_t *json_certificate(const tb_certificate *c, bool energy)
{
    json_t *object = json_object();
    json_object_set_new(object, "status", json_string(tb_status_name(c->status)));
    json_object_set_new(object, "flags", json_flags(c->flags));
    json_object_set_new(object, "step", json_integer(c->step));
    json_object_set_new(object, "time", json_finite(c->time));
    json_object_set_new(object, "residual", json_finite(c->residual));
    json_object_set_new(object, "penetration", json_finite(c->penetration));
    json_object_set_new(object, "cone_error", json_finite(c->cone_error));
    json_object_set_new(object, "complementarity_error", json_finite(c->complementarity_error));
    json_object_set_new(object, "closure_error", json_finite(c->closure_error));
    json_object_set_new(object, "energy", json_finite(energy ? c->energy : NAN));
    json_object_set_new(object, "energy_change", json_finite(energy ? c->energy_change : NAN));
    json_object_set_new(object, "contacts", json_integer(c->contacts));
    json_object_set_new(object, "rows", json_integer(c->rows));
    json_object_set_new(object, "iterations", json_integer(c->iterations));
    json_object_set_new(object, "solver", json_text(c->solver));
    json_object_set_new(object, "known_statuses", json_integer(c->known_statuses));
    json_object_set_new(object, "kept_statuses", json_integer(c->kept_statuses));
    json_object_set_new(object, "linear_solves", json_integer(c->linear_solves));
    json_object_set_new(object, "factorizations", json_integer(c->factorizations));
    json_object_set_new(object, "resets", json_integer(c->resets));
    const struct {
        const char *name;
        double value;
    } ENERGIES[] = {
        {"energy_recovery", c->energy_recovery}, {"energy_motors", c->energy_motors},
        {"energy_damping", c->energy_damping},   {"energy_friction", c->energy_friction},
        {"energy_applied", c->energy_applied},   {"energy_unexplained", c->energy_unexplained},
        {"energy_bound", c->energy_bound}};
    for (size_t i = 0; i < sizeof ENERGIES / sizeof ENERGIES[0]; i++)
        json_object_set_new(object, ENERGIES[i].name,
                            json_finite(energy ? ENERGIES[i].value : (double)NAN));
    json_object_set_new(object, "asleep", json_integer(c->asleep));
    json_object_set_new(object, "faults", json_integer(c->faults));
    json_object_set_new(object, "worst_fault", json_fault(&c->worst_fault));
    return object;
}

json_t *json_error(const tb_error *error)
{
    json_t *object = json_object();
    json_object_set_new(object, "status", json_string(tb_status_name(error->status)));
    json_object_set_new(object, "message", json_text(error->message));
    json_object_set_new(object, "file", json_text(error->file));
    json_object_set_new(object, "line", json_integer(error->line));
    json_object_set_new(object, "field", json_text(error->field));
    return object;
}

static const size_t FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_ENSURE_ASCII;

bool json_write(FILE *file, json_t *object)
{
    const bool printed = object != NULL && json_dumpf(object, file, FLAGS) == 0;
    json_decref(object);
    return printed;
}

bool json_write_members(FILE *file, json_t *object)
{
    char *text = object != NULL ? json_dumps(object, FLAGS) : NULL;
    const size_t size = text != NULL ? strlen(text) : 0;
    const bool printed = size >= 2 && fwrite(text + 1, 1, size - 2, file) == size - 2;
    free(text);
    json_decref(object);
    return printed;
}

bool json_print(FILE *file, json_t *object)
{
    const bool printed = json_write(file, object);
    if (printed) fputc('\n', file);
    return printed;
}
