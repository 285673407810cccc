/* Dependence analysis: which loops are kernels.
 *
 * A round of a loop over i is independent of the others if each scalar that it assigns is assigned
 * before it is read, and is not read behind the loop, and if any two accesses to an array of which
 * one is a store have a dimension with the subscript i + c, the same c in both (a strong
 * single-index test), or constants that differ, or if they have two colours (parity.c). A nest of
 * loops with independent rounds at each level is one kernel. The first access that breaks the rule
 * is the reason in the report. */
#include "modelica/loops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "modelica/emit.h"
#include "modelica/inline.h"

/* ---- walks ---- */

void tb_mo_each_expression(const mo_s *s, void (*visit)(const mo_x *x, void *context),
                           void *context)
{
    const mo_function *f = s->callee;
    if (s->value != NULL) visit(s->value, context);
    if (s->limit != NULL) visit(s->limit, context);
    if (s->step != NULL) visit(s->step, context);
    for (int32_t d = 0; d < s->count; d++) visit(s->subscript[d], context);
    for (int32_t k = 0; f != NULL && k < f->inputs + f->flags; k++)
        if (s->arguments[k].value != NULL) visit(s->arguments[k].value, context);
}

void tb_mo_each_statement(const mo_s *s, void (*visit)(const mo_s *s, void *context), void *context)
{
    for (; s != NULL; s = s->next) {
        visit(s, context);
        tb_mo_each_statement(s->body, visit, context);
        tb_mo_each_statement(s->orelse, visit, context);
    }
}

bool tb_mo_assigns(const mo_s *s, int32_t variable)
{
    for (; s != NULL; s = s->next) {
        if ((s->op == MO_S_ASSIGN || s->op == MO_S_FOR) && s->variable == variable) return true;
        for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->outputs; k++)
            if (s->results[k] == variable) return true;
        if (tb_mo_assigns(s->body, variable) || tb_mo_assigns(s->orelse, variable)) return true;
    }
    return false;
}

/* ---- properties of the analysed loop ---- */

typedef struct mo_study {
    const mo_program *program;
    const mo_function *function;
    const mo_s *loop; /* the level under study */
    int32_t iterator;
    tb_arena *arena;
    const char *reason; /* NULL: independent so far */
    mo_place place;
    mo_fold *fold;   /* collects reductions; NULL: they forbid a kernel */
    bool writes_out; /* tries loops with their calls written out */
    /* of the pair of accesses under test */
    const mo_s *store;
} mo_study;

static void forbid(mo_study *study, mo_place place, const char *format, ...) TB_PRINTF(3, 4);
static void forbid(mo_study *study, mo_place place, const char *format, ...)
{
    char text[MO_REASON_BYTES];
    if (study->reason != NULL) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    study->reason = tb_arena_string(study->arena, text);
    if (study->reason == NULL) study->reason = "no memory for a reason";
    study->place = place;
}

static const char *name_of(const mo_study *study, int32_t variable)
{
    const char *name = study->function->variables[variable].name;
    return name[0] != '\0' ? name : "a temporary";
}

/* ---- statements that a kernel can hold ---- */

static void check_device(const mo_s *s, void *context)
{
    bool *fits = context;
    if (s->op == MO_S_ALLOCATE || s->op == MO_S_MOVE || s->op == MO_S_COPY) *fits = false;
}

bool tb_mo_is_device_function(const mo_function *f, int32_t depth)
{
    enum { DEEPEST = 8 };
    bool fits = depth < DEEPEST;
    for (int32_t k = f->inputs + f->flags; k < f->count; k++)
        if (f->variables[k].rank > 0) fits = false;
    tb_mo_each_statement(f->body, check_device, &fits);
    return fits;
}

static bool calls_are_device(const mo_s *s, int32_t depth)
{
    for (; s != NULL; s = s->next) {
        if (s->op == MO_S_CALL && (!tb_mo_is_device_function(s->callee, depth) ||
                                   !calls_are_device(s->callee->body, depth + 1)))
            return false;
        if (!calls_are_device(s->body, depth) || !calls_are_device(s->orelse, depth)) return false;
    }
    return true;
}

/* statements that need the host, or that leave the loop; `inside` counts the loops between */
static void check_statements(mo_study *study, const mo_s *s, int32_t inside)
{
    for (; s != NULL && study->reason == NULL; s = s->next) {
        const int32_t deeper = inside + (s->op == MO_S_FOR || s->op == MO_S_WHILE);
        switch (s->op) {
        case MO_S_ALLOCATE:
        case MO_S_MOVE:
        case MO_S_COPY:
            forbid(study, s->place, "array '%s' gets its memory inside the loop",
                   name_of(study, s->variable));
            break;
        case MO_S_RETURN: forbid(study, s->place, "return leaves the loop"); break;
        case MO_S_BREAK:
            if (inside == 0) forbid(study, s->place, "break leaves the loop");
            break;
        case MO_S_CALL:
            if (!tb_mo_is_device_function(s->callee, 0) || !calls_are_device(s->callee->body, 1))
                forbid(study, s->place, "function '%s' has arrays of its own or calls itself",
                       s->callee->name);
            break;
        default: break;
        }
        check_statements(study, s->body, deeper);
        check_statements(study, s->orelse, inside);
    }
}

/* ---- scalars ---- */

typedef struct mo_reads {
    int32_t variable;
    bool found;
    mo_place place;
} mo_reads;

static void find_read(const mo_x *x, void *context)
{
    mo_reads *reads = context;
    if (x->op == MO_X_VARIABLE && x->variable == reads->variable && !reads->found) {
        reads->found = true;
        reads->place = x->place;
    }
    for (int32_t k = 0; k < x->count; k++) find_read(x->operand[k], context);
}

/* Whether a variable is read before it is assigned in a list of statements; *assigned says whether
 * every path through the list assigns it. Where `kill` is met, its assignments do not count. */
static bool reads_first(const mo_s *s, int32_t variable, bool *assigned, const mo_s *kill,
                        mo_reads *reads)
{
    for (; s != NULL; s = s->next) {
        if (s == kill) {
            *assigned = false;
            continue;
        }
        if (!*assigned) {
            reads->variable = variable;
            tb_mo_each_expression(s, find_read, reads);
            if (reads->found) return true;
        }
        bool below = *assigned, other = *assigned;
        if (s->op == MO_S_FOR || s->op == MO_S_WHILE) {
            /* a later round reads elements that an earlier one wrote */
            if (kill != NULL) below = false;
            if (s->op == MO_S_FOR && s->variable == variable) below = true;
            if (reads_first(s->body, variable, &below, kill, reads)) return true;
            if (s->op == MO_S_WHILE && kill == NULL) *assigned = *assigned || below;
            if (kill != NULL && !below) *assigned = *assigned && !tb_mo_assigns(s->body, variable);
            continue;
        }
        if (reads_first(s->body, variable, &below, kill, reads) ||
            reads_first(s->orelse, variable, &other, kill, reads))
            return true;
        if (s->op == MO_S_IF) *assigned = below && other;
        if (s->op == MO_S_ASSIGN && s->variable == variable) *assigned = true;
        for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->outputs; k++)
            if (s->results[k] == variable) *assigned = true;
    }
    return false;
}

/* v := v + x, v * x, min(v, x), max(v, x), and no other mention of v */
static bool is_reduction(const mo_s *s, int32_t variable)
{
    bool found = false;
    for (; s != NULL; s = s->next) {
        mo_reads reads = {.variable = variable};
        if (s->op == MO_S_ASSIGN && s->variable == variable) {
            const mo_x *x = s->value;
            if ((x->op != MO_X_ADD && x->op != MO_X_MULTIPLY && x->op != MO_X_MINIMUM &&
                 x->op != MO_X_MAXIMUM) ||
                x->operand[0]->op != MO_X_VARIABLE || x->operand[0]->variable != variable)
                return false;
            find_read(x->operand[1], &reads);
            if (reads.found) return false;
            found = true;
            continue;
        }
        tb_mo_each_expression(s, find_read, &reads);
        if (reads.found) return false;
        if (s->body != NULL && tb_mo_assigns(s->body, variable)) {
            if (!is_reduction(s->body, variable)) return false;
            found = true;
        }
    }
    return found;
}

typedef struct mo_count {
    int32_t variable, assignments;
} mo_count;

static void count_assignment(const mo_s *s, void *context)
{
    mo_count *count = context;
    if ((s->op == MO_S_ASSIGN || s->op == MO_S_FOR) && s->variable == count->variable)
        count->assignments++;
    for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->outputs; k++)
        if (s->results[k] == count->variable) count->assignments++;
}

/* Notes a reduction that the loop's kernel can make: one assignment a round. */
static bool note_fold(mo_study *study, int32_t variable)
{
    mo_fold *fold = study->fold;
    mo_count count = {.variable = variable};
    if (fold == NULL) return false;
    for (int32_t q = 0; q < fold->count; q++)
        if (fold->variable[q] == variable) return true;
    tb_mo_each_statement(study->loop->body, count_assignment, &count);
    if (count.assignments != 1 || fold->count == MO_FOLDS) return false;
    fold->variable[fold->count++] = variable;
    return true;
}

/* Finds the assignments of the reductions in the innermost body, outside of loops. */
static int32_t place_folds(mo_fold *fold, const mo_s *s, bool always)
{
    int32_t found = 0;
    for (; s != NULL; s = s->next) {
        if (s->op == MO_S_IF)
            found += place_folds(fold, s->body, false) + place_folds(fold, s->orelse, false);
        for (int32_t q = 0; s->op == MO_S_ASSIGN && q < fold->count; q++)
            if (s->variable == fold->variable[q]) {
                fold->statement[q] = s;
                fold->always[q] = always;
                found++;
            }
    }
    return found;
}

static void check_scalar(mo_study *study, int32_t variable)
{
    const mo_variable *v = &study->function->variables[variable];
    const mo_s *body = study->loop->body;
    mo_reads reads = {0};
    bool assigned = false;
    if (v->rank > 0 || !tb_mo_assigns(body, variable)) return;
    if (reads_first(body, variable, &assigned, NULL, &reads)) {
        const bool reduces = is_reduction(body, variable);
        if (reduces && note_fold(study, variable)) return;
        if (reduces)
            forbid(study, reads.place, "'%s' is a reduction over the rounds",
                   name_of(study, variable));
        else
            forbid(study, reads.place, "'%s' is read here before its round assigns it",
                   name_of(study, variable));
        return;
    }
    reads = (mo_reads){0};
    assigned = false;
    if (reads_first(study->function->body, variable, &assigned, study->loop, &reads))
        forbid(study, reads.place, "'%s' is read here, behind the loop that assigns it",
               name_of(study, variable));
    else if (v->role == MO_OUT && !assigned)
        forbid(study, study->loop->place, "the last round decides the output '%s'",
               name_of(study, variable));
}

/* ---- arrays ---- */

/* whether two subscripts of one dimension keep the accesses of different rounds apart */
static bool keeps_apart(const mo_study *study, const mo_x *p, const mo_x *q)
{
    const mo_x *a, *b;
    const int64_t c = tb_mo_linear(p, &a), d = tb_mo_linear(q, &b);
    if (a == NULL && b == NULL) return c != d;
    if (a == NULL || b == NULL || a->op != MO_X_VARIABLE || b->op != MO_X_VARIABLE ||
        a->variable != b->variable)
        return false;
    if (a->variable == study->iterator) return c == d;
    /* the same value in both: a variable that no round changes */
    return c != d && !tb_mo_assigns(study->loop->body, a->variable);
}

static void describe(const mo_study *study, const mo_x *x, char *text, size_t size)
{
    const mo_x *base;
    const int64_t offset = tb_mo_linear(x, &base);
    if (base == NULL)
        snprintf(text, size, "%" PRId64, offset);
    else if (base->op != MO_X_VARIABLE || study->function->variables[base->variable].name[0] == 0)
        snprintf(text, size, "...");
    else if (offset == 0)
        snprintf(text, size, "%.40s", name_of(study, base->variable));
    else
        snprintf(text, size, "%.40s %c %" PRId64, name_of(study, base->variable),
                 offset < 0 ? '-' : '+', offset < 0 ? -offset : offset);
}

static void check_access(mo_study *study, int32_t variable, int32_t count,
                         const mo_x *const *subscript, mo_place place, bool is_store)
{
    const mo_s *store = study->store;
    if (study->reason != NULL || variable != store->variable) return;
    for (int32_t d = 0; d < count; d++)
        if (keeps_apart(study, store->subscript[d], subscript[d])) return;
    if (tb_mo_has_other_colour(study->loop, count, store->subscript, subscript)) return;
    char first[160] = "", second[160] = "", part[64];
    for (int32_t d = 0; d < count && d < 3; d++) {
        describe(study, subscript[d], part, sizeof part);
        snprintf(first + strlen(first), sizeof first - strlen(first), "%s%s", d ? ", " : "", part);
        describe(study, store->subscript[d], part, sizeof part);
        snprintf(second + strlen(second), sizeof second - strlen(second), "%s%s", d ? ", " : "",
                 part);
    }
    forbid(study, place, "%s[%.70s] may be %s by one round and [%.70s] assigned by another",
           name_of(study, variable), first, is_store ? "assigned" : "read", second);
}

static void check_read(const mo_x *x, void *context)
{
    mo_study *study = context;
    if (x->op == MO_X_ELEMENT)
        check_access(study, x->variable, x->count, x->operand, x->place, false);
    for (int32_t k = 0; k < x->count; k++) check_read(x->operand[k], context);
}

static void check_other(const mo_s *s, void *context)
{
    mo_study *study = context;
    tb_mo_each_expression(s, check_read, study);
    if (s->op == MO_S_STORE)
        check_access(study, s->variable, s->count, s->subscript, s->place, true);
    for (int32_t k = 0; s->op == MO_S_CALL && k < s->callee->inputs + s->callee->flags; k++)
        if (s->arguments[k].value == NULL && s->arguments[k].variable == study->store->variable)
            forbid(study, s->place, "'%s' is assigned and handed to '%s'",
                   name_of(study, study->store->variable), s->callee->name);
}

static void check_store(const mo_s *s, void *context)
{
    mo_study *study = context;
    if (s->op != MO_S_STORE || study->reason != NULL) return;
    study->store = s;
    tb_mo_each_statement(study->loop->body, check_other, study);
}

/* ---- nests ---- */

/* NULL if the rounds of the loop are independent, else the reason; the place in study->place */
static const char *study_level(mo_study *study, const mo_s *loop)
{
    study->loop = loop;
    study->iterator = loop->variable;
    study->reason = NULL;
    if (loop->step->op != MO_X_CONSTANT || loop->step->integer != 1)
        forbid(study, loop->place, "the step of the loop is not 1");
    check_statements(study, loop->body, 0);
    for (int32_t v = 0; v < study->function->count && study->reason == NULL; v++)
        check_scalar(study, v);
    if (study->reason == NULL) tb_mo_each_statement(loop->body, check_store, study);
    return study->reason;
}

/* whether a loop's ends are the same in every round of the nest around it */
static bool has_fixed_ends(const mo_s *nest, const mo_s *loop, const mo_function *f)
{
    for (int32_t v = 0; v < f->count; v++)
        if ((v == nest->variable || tb_mo_assigns(nest->body, v)) &&
            (tb_mo_x_mentions(loop->value, v) || tb_mo_x_mentions(loop->limit, v)))
            return false;
    return true;
}

/* an element that an end reads may be stored in the nest */
static void find_element(const mo_x *x, void *context)
{
    if (x->op == MO_X_ELEMENT) *(bool *)context = true;
    for (int32_t k = 0; k < x->count; k++) find_element(x->operand[k], context);
}

/* the levels of a nest whose rounds are independent */
static void study_nest(mo_study *study, const mo_s *s, mo_loop *found)
{
    for (const mo_s *level = s; found->depth < MO_NEST;) {
        const char *reason = study_level(study, level);
        if (reason != NULL) {
            if (found->depth == 0) {
                found->reason = reason;
                found->reason_place = study->place;
            }
            break;
        }
        found->nest[found->depth++] = level;
        const mo_s *inner = level->body;
        bool element = false;
        if (inner == NULL || inner->next != NULL || inner->op != MO_S_FOR) break;
        find_element(inner->value, &element);
        find_element(inner->limit, &element);
        if (element || !has_fixed_ends(s, inner, study->function)) break;
        level = inner;
    }
}

/* A nest whose rounds are independent but for scalars that they reduce. */
static tb_status study_fold(mo_study *study, const mo_s *s, mo_loop *found)
{
    mo_fold fold = {.count = 0};
    mo_loop nest = {.number = -1};
    study->fold = &fold;
    study_nest(study, s, &nest);
    study->fold = NULL;
    if (nest.depth == 0 || fold.count == 0 ||
        place_folds(&fold, nest.nest[nest.depth - 1]->body, true) != fold.count)
        return TB_OK;
    mo_fold *kept = TB_ARENA_ZEROED(study->arena, mo_fold, 1);
    if (kept == NULL) return TB_RESOURCE_EXHAUSTED;
    *kept = fold;
    *found = nest;
    found->fold = kept;
    return TB_OK;
}

static tb_status study_loop(mo_study *study, mo_s *s, int32_t *kernels)
{
    mo_loop *found = TB_ARENA_ZEROED(study->arena, mo_loop, 1);
    if (found == NULL) return TB_RESOURCE_EXHAUSTED;
    found->number = -1;
    s->loop = found;
    study_nest(study, s, found);
    if (found->depth == 0 && study_fold(study, s, found) != TB_OK) return TB_RESOURCE_EXHAUSTED;
    if (found->depth > 0) found->number = (*kernels)++;
    return TB_OK;
}

static tb_status study_sweep(mo_study *study, mo_s *s, int32_t *sweeps)
{
    mo_sweep found;
    if (!tb_mo_find_sweep(study->function, s, &found)) return TB_OK;
    mo_sweep *kept = TB_ARENA_ZEROED(study->arena, mo_sweep, 1);
    if (kept == NULL) return TB_RESOURCE_EXHAUSTED;
    *kept = found;
    kept->number = (*sweeps)++;
    s->loop->sweep = kept;
    return TB_OK;
}

static bool has_calls(const mo_s *s)
{
    for (; s != NULL; s = s->next)
        if (s->op == MO_S_CALL || has_calls(s->body) || has_calls(s->orelse)) return true;
    return false;
}

static tb_status study_list(mo_study *study, mo_s *s, mo_function *f);

/* Studies a loop with its calls written out, and takes it in place of the loop if the card gains by it. */
static tb_status study_written_out(mo_study *study, mo_s *s, mo_function *f)
{
    const int32_t kernels = f->kernels, sweeps = f->sweeps, count = f->count, trees = f->trees;
    mo_s *made = tb_mo_inline(study->arena, f, s);
    tb_status status = TB_OK;
    study->writes_out = false;
    if (made != NULL) status = study_list(study, made, f);
    study->writes_out = true;
    if (made != NULL && status == TB_OK &&
        (made->loop->depth > 0 || (made->loop->sweep != NULL && f->sweeps == sweeps + 1))) {
        made->next = s->next;
        *s = *made;
        if (s->loop->depth > 0) s->loop->nest[0] = s;
        return TB_OK;
    }
    f->kernels = kernels;
    f->sweeps = sweeps;
    f->count = count;
    f->trees = trees;
    return status;
}

static bool is_on_card(const mo_s *s)
{
    return s->loop != NULL && (s->loop->depth > 0 || s->loop->sweep != NULL);
}

static tb_status study_list(mo_study *study, mo_s *s, mo_function *f)
{
    tb_status status = TB_OK;
    for (; s != NULL && status == TB_OK; s = s->next) {
        if (s->op == MO_S_FOR) status = study_loop(study, s, &f->kernels);
        if (s->op == MO_S_FOR && status == TB_OK && s->loop->depth == 0 && study->writes_out &&
            has_calls(s->body))
            status = study_written_out(study, s, f);
        if (status != TB_OK) break;
        if (s->op == MO_S_FOR && is_on_card(s)) continue;
        if (status == TB_OK) status = study_list(study, s->body, f);
        if (status == TB_OK) status = study_list(study, s->orelse, f);
        if (status == TB_OK && s->op == MO_S_FOR) status = study_sweep(study, s, &f->sweeps);
    }
    return status;
}

tb_status tb_mo_analyse(mo_program *program)
{
    bool card = false;
    for (int32_t k = 0; k < program->count; k++) card = card || program->functions[k]->on_card;
    for (int32_t k = 0; k < program->count && card; k++) {
        mo_function *f = program->functions[k];
        mo_study study = {
            .program = program, .function = f, .arena = &program->arena, .writes_out = true};
        if (study_list(&study, f->body, f) != TB_OK)
            return tb_mo_fail_as(&program->source, TB_RESOURCE_EXHAUSTED, f->place,
                                 "no memory for the analysis of loops");
        tb_mo_settle_trees(f);
    }
    return TB_OK;
}
