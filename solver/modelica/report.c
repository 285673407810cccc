/* The report on the loops of a function: kernels, reductions, and accesses that forbid a kernel. */
#include <stdio.h>
#include <string.h>

#include "modelica/function.h"
#include "modelica/loops.h"
#include "modelica/native.h"

typedef struct mo_report {
    const mo_program *program;
    const mo_function *function;
    mo_text text;
} mo_report;

static void report_loop(mo_report *report, const mo_s *s)
{
    const mo_loop *loop = s->loop;
    const bool kernel = loop->depth > 0;
    const mo_place place = kernel || loop->sweep != NULL ? s->place : loop->reason_place;
    if (!kernel && report->function->variables[s->variable].name[0] == '\0') return;
    tb_mo_print(&report->text, "%s:%d:%d: ", report->program->source.name, place.line,
                place.column);
    if (!kernel && loop->sweep != NULL) {
        tb_mo_print(&report->text,
                    "loop over %s at line %d takes several rounds a launch, in tiles\n",
                    report->function->variables[s->variable].name, s->place.line);
        return;
    }
    if (!kernel) {
        tb_mo_print(&report->text, "loop over %s at line %d stays on the host: %s\n",
                    report->function->variables[s->variable].name, s->place.line, loop->reason);
        return;
    }
    tb_mo_print(&report->text, "kernel over (");
    for (int32_t k = 0; k < loop->depth; k++) {
        const char *name = report->function->variables[loop->nest[k]->variable].name;
        tb_mo_print(&report->text, "%s%s", k > 0 ? ", " : "", name[0] != '\0' ? name : "elements");
    }
    tb_mo_print(&report->text, ")");
    for (int32_t q = 0; loop->fold != NULL && q < loop->fold->count; q++) {
        const char *name = report->function->variables[loop->fold->variable[q]].name;
        tb_mo_print(&report->text, "%s '%s'", q > 0 ? "," : ", which reduces",
                    name[0] != '\0' ? name : "a temporary");
    }
    tb_mo_print(&report->text, "\n");
}

static void report_list(mo_report *report, const mo_s *s)
{
    for (; s != NULL; s = s->next) {
        if (s->op == MO_S_FOR && s->loop != NULL) report_loop(report, s);
        if (s->op == MO_S_FOR && s->loop != NULL && s->loop->depth > 0) continue;
        report_list(report, s->body);
        report_list(report, s->orelse);
    }
}

tb_status tb_function_report(const tb_function_program *program, int32_t function, char **text,
                             tb_error *error)
{
    mo_report report = {.program = &program->program};
    *text = NULL;
    if (function < 0 || function >= program->program.count)
        return tb_fail(error, TB_NOT_FOUND, "the program has no function number %d", function);
    report.function = program->program.functions[function];
    report_list(&report, report.function->body);
    tb_mo_print(&report.text, "%s", "");
    if (report.text.failed) {
        tb_bytes_free(&report.text.bytes);
        return tb_fail_memory(error, 0, "a report");
    }
    *text = (char *)report.text.bytes.base;
    return TB_OK;
}
