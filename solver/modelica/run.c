/* Memory, limits and failures of a call. */
#include "modelica/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "modelica/arithmetic.h"

double tb_mo_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- failures ---- */

void tb_mo_run_escape(mo_run *run, tb_status status, mo_place place, const char *format, ...)
{
    char text[TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    run->status = status;
    if (place.line > 0)
        tb_fail(run->error, status, "%s:%d:%d: %s", run->program->source.name, place.line,
                place.column, text);
    else
        tb_fail(run->error, status, "%s", text);
    if (run->error != NULL && place.line > 0) {
        run->error->line = place.line;
        snprintf(run->error->file, sizeof run->error->file, "%s", run->program->source.name);
    }
    longjmp(run->escape, 1);
}

static const char *domain_of(int64_t op)
{
    switch (op) {
    case MO_X_SQRT: return "sqrt of a negative number";
    case MO_X_LOG: return "log of a number that is not positive";
    case MO_X_LOG10: return "log10 of a number that is not positive";
    case MO_X_ASIN: return "asin outside of -1 ... 1";
    case MO_X_ACOS: return "acos outside of -1 ... 1";
    default: return "a negative number to a power that is not whole";
    }
}

/* code of a place: function times 2^32, variable times 8, dimension */
static void fail_index(mo_run *run, mo_place place, int64_t what, int64_t index, int64_t size)
{
    const int64_t function = what >> 32, variable = (what & 0xffffffff) >> 3;
    const char *name = "";
    if (function >= 0 && function < run->program->count &&
        variable < run->program->functions[function]->count)
        name = run->program->functions[function]->variables[variable].name;
    char array[TB_FUNCTION_NAME_SIZE + 8] = "an array";
    if (name[0] != '\0') snprintf(array, sizeof array, "'%s'", name);
    tb_mo_run_escape(run, TB_INVALID_ARGUMENT, place,
                     "index %lld is outside of 1:%lld in dimension %lld of %s", (long long)index,
                     (long long)size, (long long)(what & 7) + 1, array);
}

static void fail(mo_run *run, int kind, int64_t at, int64_t what, int64_t a, int64_t b)
{
    const mo_place place = {(int32_t)(at >> 32), (int32_t)(at & 0xffffffff)};
    const mo_message *message;
    switch (kind) {
    case MO_FAIL_INDEX: fail_index(run, place, what, a, b); return;
    case MO_FAIL_OVERFLOW:
        tb_mo_run_escape(run, TB_INVALID_ARGUMENT, place, "the result is outside of Integer");
    case MO_FAIL_DIVISION: tb_mo_run_escape(run, TB_INVALID_ARGUMENT, place, "division by zero");
    case MO_FAIL_DOMAIN: tb_mo_run_escape(run, TB_INVALID_ARGUMENT, place, "%s", domain_of(a));
    case MO_FAIL_ASSERT:
        message = &run->program->messages[a];
        tb_mo_run_escape(run, message->status, place, "%s%s",
                         message->status == TB_FAILED_PRECONDITION ? "assertion failed: " : "",
                         message->text);
    case MO_FAIL_STEP:
        tb_mo_run_escape(run, TB_INVALID_ARGUMENT, place, "the step of the range is 0");
    case MO_FAIL_SIZE:
        tb_mo_run_escape(run, TB_INVALID_ARGUMENT, place, "a size is %lld", (long long)a);
    case MO_FAIL_DEPTH:
        tb_mo_run_escape(run, TB_RESOURCE_EXHAUSTED, place, "more than %d calls inside one another",
                         MO_DEEPEST_CALL);
    default:
        tb_mo_run_escape(run, TB_RESOURCE_EXHAUSTED, place,
                         "the arrays need more than the limit of %llu bytes",
                         (unsigned long long)run->options->memory_bytes);
    }
}

void tb_mo_fail_kind(mo_run *run, int kind, mo_place place, int64_t what, int64_t a, int64_t b)
{
    fail(run, kind, (int64_t)place.line << 32 | place.column, what, a, b);
    tb_mo_run_escape(run, TB_INTERNAL, place, "a failure of no kind");
}

static void poll_limits(mo_run *run)
{
    run->budget = MO_POLL_ROUNDS;
    if (run->options->cancelled != NULL && run->options->cancelled(run->options->cancelled_context))
        tb_mo_run_escape(run, TB_CANCELLED, (mo_place){0, 0}, "the call was cancelled");
    if (run->deadline > 0 && tb_mo_seconds() > run->deadline)
        tb_mo_run_escape(run, TB_DEADLINE_EXCEEDED, (mo_place){0, 0},
                         "the call took longer than its limit of %g s", run->options->seconds);
}

/* ---- arrays ---- */

size_t tb_mo_element_bytes(mo_base base)
{
    return base == MO_T_BOOLEAN ? 1 : 8;
}
static bool is_within_limit(const mo_run *run, int64_t bytes)
{
    const int64_t most =
        run->options->memory_bytes > 0 && run->options->memory_bytes < (uint64_t)INT64_MAX / 16
            ? (int64_t)run->options->memory_bytes
            : INT64_MAX / 16;
    return bytes <= most && run->bytes <= most - bytes;
}

void *tb_mo_take(mo_run *run, int64_t bytes)
{
    if (!is_within_limit(run, bytes)) return NULL;
    mo_block *block = calloc(1, sizeof *block + (size_t)bytes);
    if (block == NULL) return NULL;
    block->bytes = bytes;
    block->next = run->blocks;
    if (run->blocks != NULL) run->blocks->previous = block;
    run->blocks = block;
    run->bytes += bytes;
    return block + 1;
}

void tb_mo_give_back(mo_run *run, void *memory)
{
    mo_block *block = (mo_block *)memory - 1;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        run->blocks = block->next;
    if (block->next != NULL) block->next->previous = block->previous;
    run->bytes -= block->bytes;
    free(block);
}

void tb_mo_close_array(mo_run *run, mo_array *array)
{
    if (array->card != NULL && !array->kept) tb_mo_card_free(run, array);
    array->card = NULL;
    array->kept = false;
    if (!array->borrowed && array->data != NULL)
        tb_mo_give_back(run, array->data);
    else if (!array->borrowed)
        run->bytes -= array->bytes;
    array->data = NULL;
    array->bytes = 0;
    array->borrowed = false;
}

void tb_mo_allocate(mo_run *run, mo_array *array, int64_t place)
{
    int64_t bytes = (int64_t)tb_mo_element_bytes(array->base);
    bool empty = false;
    for (int32_t d = 0; d < array->rank; d++) {
        if (array->size[d] < 0) fail(run, MO_FAIL_SIZE, place, 0, array->size[d], 0);
        empty = empty || array->size[d] == 0;
    }
    for (int32_t d = 0; d < array->rank && !empty; d++)
        if (__builtin_mul_overflow(bytes, array->size[d], &bytes)) bytes = INT64_MAX;
    if (empty) bytes = 0;
    array->zero = true;
    array->where = MO_ON_HOST;
    if (run->card != NULL && bytes > 0) {
        if (array->bytes == bytes && !array->borrowed && array->data == NULL) return;
        tb_mo_close_array(run, array);
        if (!is_within_limit(run, bytes)) fail(run, MO_FAIL_MEMORY, place, 0, bytes, 0);
        run->bytes += array->bytes = bytes;
    } else if (array->data == NULL || array->borrowed || array->bytes != bytes) {
        tb_mo_close_array(run, array);
        array->data = tb_mo_take(run, bytes);
        if (array->data == NULL) fail(run, MO_FAIL_MEMORY, place, 0, bytes, 0);
        array->bytes = bytes;
    } else {
        memset(array->data, 0, (size_t)bytes);
    }
}

void tb_mo_need_host(mo_run *run, mo_array *array)
{
    if (array->data != NULL || array->bytes == 0) return;
    run->bytes -= array->bytes;
    array->data = tb_mo_take(run, array->bytes);
    if (array->data != NULL) return;
    run->bytes += array->bytes;
    fail(run, MO_FAIL_MEMORY, 0, 0, array->bytes, 0);
}

static void move(mo_run *run, mo_array *to, mo_array *from)
{
    const mo_array old = *to;
    (void)run;
    *to = *from;
    *from = old;
}

static void copy(mo_run *run, mo_array *to, const mo_array *from, int64_t place)
{
    if (to == from) return;
    memcpy(to->size, from->size, sizeof to->size);
    tb_mo_allocate(run, to, place);
    if (from->data == NULL) return;
    tb_mo_need_host(run, to);
    if (to->bytes > 0) memcpy(to->data, from->data, (size_t)to->bytes);
    to->zero = from->zero;
}

/* ---- begin and end ---- */

void tb_mo_run_init(mo_run *run, const mo_program *program, const tb_function_options *options,
                    tb_error *error)
{
    *run = (mo_run){.program = program,
                    .options = options,
                    .error = error,
                    .budget = MO_POLL_ROUNDS,
                    .poll = poll_limits,
                    .fail = fail,
                    .allocate = tb_mo_allocate,
                    .move = move,
                    .copy = copy,
                    .close = tb_mo_close_array};
    if (options->seconds > 0) run->deadline = tb_mo_seconds() + options->seconds;
}

void tb_mo_run_end(mo_run *run)
{
    for (mo_block *b = run->blocks, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    run->blocks = NULL;
    run->bytes = 0;
}
