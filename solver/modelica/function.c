/* The public side of Modelica functions: programs, descriptions and calls. */
#include "modelica/native.h"
#include "modelica/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sha256.h"
#include "modelica/function.h"

static const char *const BACKENDS[] = {"auto", "interpreter", "cpu", "gpu"};
enum { BACKEND_COUNT = sizeof BACKENDS / sizeof BACKENDS[0] };

const char *tb_function_backend_name(tb_function_backend backend)
{
    return (unsigned)backend < BACKEND_COUNT ? BACKENDS[backend] : NULL;
}

tb_function_options tb_function_defaults(void)
{
    return (tb_function_options){
        .backend = TB_FUNCTION_AUTO, .seconds = 60, .memory_bytes = UINT64_C(2) << 30};
}

/* ---- programs ---- */

/* the line of a fault and a caret below it; control bytes become spaces */
static void draw_caret(const mo_source *source, tb_function_fault *fault)
{
    enum { WIDTH = 160 };
    fault->line = source->fault.line;
    fault->column = source->fault.column;
    fault->caret[0] = '\0';
    size_t begin = 0;
    for (int32_t line = 1; line < fault->line && begin < source->size; begin++)
        if (source->text[begin] == '\n') line++;
    size_t end = begin;
    while (end < source->size && source->text[end] != '\n') end++;
    const size_t column = fault->column > 0 ? (size_t)fault->column - 1 : 0;
    if (begin >= source->size || column > end - begin || column >= WIDTH) return;
    char *to = fault->caret;
    for (size_t k = begin; k < end && k < begin + WIDTH; k++) {
        const char c = source->text[k];
        *to++ = c >= ' ' && c <= '~' ? c : ' ';
    }
    *to++ = '\n';
    for (size_t k = 0; k < column; k++) *to++ = ' ';
    strcpy(to, "^");
}

tb_status tb_function_compile(const char *source, size_t size, const char *name,
                              tb_function_program **program, tb_function_fault *fault,
                              tb_error *error)
{
    tb_error own = {0};
    if (error == NULL) error = &own;
    if (fault != NULL) *fault = (tb_function_fault){0};
    *program = NULL;
    tb_function_program *made = calloc(1, sizeof *made);
    if (made == NULL) return tb_fail_memory(error, sizeof *made, "a program");
    mo_program *p = &made->program;
    tb_arena_init(&p->arena, MO_TREE_BYTES);
    pthread_mutex_init(&made->lock, NULL);
    tb_sha256_hex(source, size, p->key);
    p->source = (mo_source){.size = size, .arena = &p->arena, .error = error};
    p->source.name = tb_arena_string(&p->arena, name);
    char *text = TB_ARENA_ARRAY(&p->arena, char, size + 1);
    tb_status status = TB_OK;
    if (text == NULL || p->source.name == NULL) {
        status = tb_fail_memory(error, size, "a source");
    } else {
        if (size > 0) memcpy(text, source, size);
        text[size] = '\0';
        p->text = p->source.text = text;
        status = tb_mo_lower(p);
        if (status == TB_OK) status = tb_mo_analyse(p);
        if (status != TB_OK && fault != NULL) draw_caret(&p->source, fault);
    }
    p->source.error = NULL;
    if (status == TB_OK)
        *program = made;
    else
        tb_function_destroy(made);
    return status;
}

void tb_function_destroy(tb_function_program *program)
{
    if (program == NULL) return;
    tb_mo_native_free(program->native);
    tb_mo_card_unload(program->card);
    pthread_mutex_destroy(&program->lock);
    tb_arena_destroy(&program->program.arena);
    free(program);
}

const char *tb_function_key(const tb_function_program *program)
{
    return program->program.key;
}

/* ---- descriptions ---- */

int32_t tb_function_count(const tb_function_program *program)
{
    return program->program.count;
}

static tb_status get(const tb_function_program *program, int32_t function, const mo_function **f)
{
    if (function < 0 || function >= program->program.count) return TB_NOT_FOUND;
    *f = program->program.functions[function];
    return TB_OK;
}

tb_status tb_function_describe(const tb_function_program *program, int32_t function,
                               tb_function_info *info)
{
    const mo_function *f;
    *info = (tb_function_info){.inputs = 0};
    if (get(program, function, &f) != TB_OK) return TB_NOT_FOUND;
    snprintf(info->name, sizeof info->name, "%s", f->name);
    info->inputs = f->inputs;
    info->outputs = f->outputs;
    info->on_card = f->on_card;
    return TB_OK;
}

/* the variable of an argument: inputs, then outputs */
static int32_t variable_of(const mo_function *f, int32_t argument)
{
    return argument < f->inputs ? argument : argument + f->flags;
}

tb_status tb_function_describe_argument(const tb_function_program *program, int32_t function,
                                        int32_t argument, tb_function_argument *info)
{
    const mo_function *f;
    *info = (tb_function_argument){.rank = 0};
    if (get(program, function, &f) != TB_OK || argument < 0 || argument >= f->inputs + f->outputs)
        return TB_NOT_FOUND;
    const mo_variable *v = &f->variables[variable_of(f, argument)];
    snprintf(info->name, sizeof info->name, "%s", v->name);
    info->type = (tb_function_type)v->base;
    info->rank = v->rank;
    info->optional = v->optional;
    return TB_OK;
}

int32_t tb_function_find(const tb_function_program *program, const char *name)
{
    int32_t found = -1, matches = 0;
    for (int32_t k = 0; k < program->program.count; k++) {
        const char *full = program->program.functions[k]->name;
        const char *last = strrchr(full, '.');
        if (strcmp(full, name) == 0) return k;
        if (last != NULL && strcmp(last + 1, name) == 0) {
            found = k;
            matches++;
        }
    }
    return matches == 1 ? found : -1;
}

/* ---- arguments ---- */

static int64_t count_of(int32_t rank, const int64_t *size)
{
    int64_t count = 1;
    for (int32_t d = 0; d < rank; d++) count *= size[d];
    return count;
}

/* x * 0 is 0 for finite x alone; four sums hide the latency of the additions. */
int64_t tb_mo_first_infinite(const double *x, int64_t count)
{
    enum { BLOCK = 1024 };
    for (int64_t k = 0; k < count; k += BLOCK) {
        const int64_t end = count - k < BLOCK ? count : k + BLOCK;
        double sum[4] = {0};
        int64_t i = k;
        for (; i + 4 <= end; i += 4)
            for (int q = 0; q < 4; q++) sum[q] += x[i + q] * 0;
        for (; i < end; i++) sum[0] += x[i] * 0;
        if (sum[0] + sum[1] + sum[2] + sum[3] == 0) continue;
        for (i = k; i < end; i++)
            if (!isfinite(x[i])) return i;
    }
    return -1;
}

static tb_status check_input(const mo_variable *v, const tb_function_value *given, tb_error *error)
{
    static const char *const TYPES[] = {"Real", "Integer", "Boolean"};
    const tb_function_value shape =
        given->kept != NULL ? tb_function_array_shape(given->kept) : *given;
    const tb_function_value *const value = &shape;
    if (given->kept == NULL && value->data == NULL && v->optional) return TB_OK;
    if (given->kept == NULL && value->data == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, v->name, "input '%s' is missing", v->name);
    if (value->type != (tb_function_type)v->base || value->rank != v->rank)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, v->name,
                             "input '%s' is %s with %d dimensions, expected %s with %d", v->name,
                             (unsigned)value->type < 3 ? TYPES[value->type] : "of no type",
                             value->rank, TYPES[v->base], v->rank);
    int64_t count = 1;
    for (int32_t d = 0; d < v->rank; d++)
        if (value->size[d] < 0 || __builtin_mul_overflow(count, value->size[d], &count) ||
            count > INT64_MAX / 16)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, v->name,
                                 "input '%s' has the size %lld in dimension %d", v->name,
                                 (long long)value->size[d], d + 1);
    if (given->kept != NULL) return TB_OK; /* its elements were checked as it was made */
    const int64_t bad = v->base == MO_T_REAL ? tb_mo_first_infinite(value->data, count) : -1;
    if (bad >= 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, v->name,
                             "element %lld of input '%s' is not finite", (long long)bad + 1,
                             v->name);
    const uint8_t *boolean = value->data;
    for (int64_t k = 0; v->base == MO_T_BOOLEAN && k < count; k++)
        if (boolean[k] > 1)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, v->name,
                                 "element %lld of input '%s' is neither 0 nor 1", (long long)k + 1,
                                 v->name);
    return TB_OK;
}

static void set_input(mo_run *run, const mo_function *f, int32_t k, const tb_function_value *value,
                      mo_slot *slot)
{
    const mo_variable *v = &f->variables[k];
    if (f->flag[k] >= 0) slot[f->flag[k]].integer = value->data != NULL || value->kept != NULL;
    if (value->kept != NULL) tb_mo_lend_kept(run, value->kept, slot[k].array);
    if (value->data == NULL || value->kept != NULL) return;
    if (v->rank > 0) {
        mo_array *array = slot[k].array;
        memcpy(array->size, value->size, sizeof array->size);
        array->data = value->data;
        array->borrowed = true;
        array->bytes = count_of(v->rank, value->size) * (int64_t)tb_mo_element_bytes(v->base);
    } else if (v->base == MO_T_REAL) {
        slot[k].real = *(const double *)value->data;
    } else if (v->base == MO_T_INTEGER) {
        slot[k].integer = *(const int64_t *)value->data;
    } else {
        slot[k].integer = *(const uint8_t *)value->data;
    }
}

void *tb_mo_output_memory(size_t bytes)
{
    enum { HUGE_PAGE = 1 << 21 };
    void *memory = NULL;
    if (bytes < 2 * HUGE_PAGE) return malloc(bytes > 0 ? bytes : 1);
    if (posix_memalign(&memory, HUGE_PAGE, bytes) != 0) return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void tb_mo_get_array(mo_run *run, mo_array *array, void *to)
{
    if (array->bytes == 0) return;
    if (!(array->where & MO_ON_HOST))
        tb_mo_card_read(run, array, to);
    else if (array->data == NULL)
        memset(to, 0, (size_t)array->bytes);
    else
        memcpy(to, array->data, (size_t)array->bytes);
}

static tb_status tell_infinite(const mo_variable *v, int64_t bad, tb_error *error)
{
    return tb_fail_field(error, TB_DIVERGED, v->name, "element %lld of output '%s' is not finite",
                         (long long)bad + 1, v->name);
}

/* An output that stays: no copy of it is made if the card has it. */
static tb_status keep_output(mo_run *run, const mo_variable *v, mo_array *array,
                             tb_function_value *value, tb_error *error)
{
    int64_t bad = -1;
    const bool checked = v->base != MO_T_REAL || ((array->where & MO_ON_HOST) == 0 &&
                                                  tb_mo_card_first_infinite(run, array, &bad));
    if (!checked) {
        if (!(array->where & MO_ON_HOST)) tb_mo_card_fetch(run, array);
        if (array->data != NULL) bad = tb_mo_first_infinite(array->data, array->bytes / 8);
    }
    if (bad >= 0) return tell_infinite(v, bad, error);
    value->kept = tb_mo_keep_output(run, array);
    return value->kept != NULL ? TB_OK : tb_fail_memory(error, (size_t)array->bytes, "an output");
}

static tb_status get_output(mo_run *run, const mo_variable *v, const mo_slot *slot, bool keep,
                            tb_function_value *value, tb_error *error)
{
    *value = (tb_function_value){.type = (tb_function_type)v->base, .rank = v->rank};
    const size_t bytes = tb_mo_element_bytes(v->base);
    if (keep && v->rank == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, v->name,
                             "output '%s' is a scalar: arrays alone are kept", v->name);
    if (v->rank > 0) memcpy(value->size, slot->array->size, sizeof value->size);
    if (keep) return keep_output(run, v, slot->array, value, error);
    const int64_t count = count_of(v->rank, value->size);
    value->data = tb_mo_output_memory((size_t)count * bytes);
    if (value->data == NULL) return tb_fail_memory(error, (size_t)count * bytes, "an output");
    if (v->rank > 0)
        tb_mo_get_array(run, slot->array, value->data);
    else if (v->base == MO_T_BOOLEAN)
        *(uint8_t *)value->data = slot->integer != 0;
    else
        memcpy(value->data, slot, bytes);
    const int64_t bad = v->base == MO_T_REAL ? tb_mo_first_infinite(value->data, count) : -1;
    return bad >= 0 ? tell_infinite(v, bad, error) : TB_OK;
}

void tb_function_value_free(tb_function_value *value)
{
    free(value->data);
    value->data = NULL;
    tb_function_array_release(value->kept);
    value->kept = NULL;
}

/* ---- calls ---- */

/* Chooses the backend, and has the code ready that it runs. */
static tb_status prepare(const tb_function_program *program, const mo_function *f,
                         const tb_function_options *options, mo_entry **entry,
                         struct mo_card **card, tb_function_timing *timing, tb_error *error)
{
    tb_function_program *open = (tb_function_program *)(uintptr_t)program;
    const tb_function_backend asked = options->backend;
    tb_status status = TB_OK;
    *entry = NULL;
    *card = NULL;
    timing->backend = TB_FUNCTION_INTERPRETER;
    if (asked == TB_FUNCTION_INTERPRETER) return TB_OK;
    if (asked == TB_FUNCTION_GPU && !f->on_card)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "function '%s' has no annotation(gpuFunction = true)", f->name);
    if (asked == TB_FUNCTION_GPU || (asked == TB_FUNCTION_AUTO && f->on_card)) {
        pthread_mutex_lock(&open->lock);
        status = tb_mo_card_load(&program->program, f, options, &open->card, card,
                                 &timing->compile_seconds, error);
        pthread_mutex_unlock(&open->lock);
        if (status == TB_OK) timing->backend = TB_FUNCTION_GPU;
        if (status == TB_OK || asked == TB_FUNCTION_GPU) return status;
    }
    pthread_mutex_lock(&open->lock);
    if (open->native == NULL)
        status = tb_mo_native_load(&program->program, options, &open->native,
                                   &timing->compile_seconds, error);
    else
        status = TB_OK;
    pthread_mutex_unlock(&open->lock);
    if (status == TB_OK) {
        *entry = tb_mo_native_entry(open->native, f->index);
        timing->backend = TB_FUNCTION_CPU;
    }
    return asked == TB_FUNCTION_AUTO ? TB_OK : status;
}

/* The call itself; a failure jumps back here. */
static tb_status run_function(mo_run *run, const mo_function *f, mo_entry *entry,
                              const tb_function_value *inputs, tb_function_value *outputs)
{
    volatile tb_status status = TB_OK;
    if (setjmp(run->escape) != 0) return run->status;
    mo_frame frame = {f, tb_mo_open_frame(run, f)};
    for (int32_t k = 0; k < f->inputs; k++) set_input(run, f, k, &inputs[k], frame.slot);
    if (entry != NULL)
        entry(run, frame.slot);
    else
        tb_mo_interpret(run, &frame);
    if (run->card != NULL) tb_mo_card_finish(run);
    for (int32_t k = 0; k < f->outputs && status == TB_OK; k++) {
        const int32_t output = f->inputs + f->flags + k;
        const bool keep = run->options->keep != NULL && run->options->keep[k];
        status = get_output(run, &f->variables[output], &frame.slot[output], keep, &outputs[k],
                            run->error);
    }
    tb_mo_close_frame(run, f, frame.slot);
    return status;
}

tb_status tb_function_call(const tb_function_program *program, int32_t function,
                           const tb_function_options *options, const tb_function_value *inputs,
                           tb_function_value *outputs, tb_function_timing *timing, tb_error *error)
{
    const mo_function *f;
    mo_entry *entry;
    mo_run run;
    tb_function_timing own;
    const tb_function_options defaults = tb_function_defaults();
    if (timing == NULL) timing = &own;
    if (options == NULL) options = &defaults;
    *timing = (tb_function_timing){0};
    tb_status status = get(program, function, &f);
    if (status != TB_OK)
        return tb_fail(error, status, "the program has no function number %d", function);
    for (int32_t k = 0; k < f->outputs; k++) outputs[k] = (tb_function_value){0};
    for (int32_t k = 0; k < f->inputs && status == TB_OK; k++)
        status = check_input(&f->variables[k], &inputs[k], error);
    tb_mo_run_init(&run, &program->program, options, error);
    if (status == TB_OK) status = prepare(program, f, options, &entry, &run.card, timing, error);
    if (status != TB_OK) return status;
    run.timing = *timing;
    const double begin = tb_mo_seconds();
    if (run.card != NULL) tb_mo_card_begin(&run);
    status = run_function(&run, f, entry, inputs, outputs);
    if (run.card != NULL) tb_mo_card_end(&run);
    tb_mo_run_end(&run);
    *timing = run.timing;
    timing->seconds = tb_mo_seconds() - begin;
    return status;
}
