/* Integrators as Modelica: the source of a function that steps x' = f(x, parameters) inline, so that the
 * states stay on the card from the first step to the last (Göteman and Roxling, 3.5.2 and 3.6, where
 * such functions are written by hand).
 *
 * Implicit Euler solves x = p + dt f(x) by Newton's method without a Jacobian: BiCGSTAB (van der Vorst
 * 1992) needs products of it with vectors alone, which differences of f give. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modelica/function.h"

static const char *const METHODS[] = {"euler", "midpoint", "runge_kutta_4", "implicit_euler"};
enum { METHOD_COUNT = sizeof METHODS / sizeof METHODS[0] };

const char *tb_function_method_name(tb_function_method method)
{
    return (unsigned)method < METHOD_COUNT ? METHODS[method] : NULL;
}

typedef struct mo_integrator {
    const mo_function *f;
    mo_text text;
} mo_integrator;

static void put(mo_integrator *g, const char *text)
{
    tb_mo_print(&g->text, "%s", text);
}

/* a template with the state's name for each $ */
static void put_for(mo_integrator *g, const char *template, int32_t state)
{
    for (const char *p = template; *p != '\0'; p++)
        if (*p == '$')
            put(g, g->f->variables[state].name);
        else
            tb_mo_print(&g->text, "%c", *p);
}

static void put_list(mo_integrator *g, const char *template, const char *separator)
{
    for (int32_t k = 0; k < g->f->outputs; k++) {
        if (k > 0) put(g, separator);
        put_for(g, template, k);
    }
}

/* "v_of_$ := ..." for each state, a line each */
static void put_lines(mo_integrator *g, const char *template)
{
    put_list(g, template, "\n");
    put(g, "\n");
}

/* the scalar product of a and b over all states */
static void put_product(mo_integrator *g, const char *a, const char *b)
{
    for (int32_t k = 0; k < g->f->outputs; k++) {
        const bool array = g->f->variables[k].rank > 0;
        put(g, k > 0 ? " + " : "");
        put(g, array ? "sum(" : "");
        put_for(g, a, k);
        put(g, array ? " .* " : " * ");
        put_for(g, b, k);
        put(g, array ? ")" : "");
    }
}

/* rates := f(states, parameters by name) */
static void put_rates(mo_integrator *g, const char *indent, const char *rates, const char *states)
{
    const bool several = g->f->outputs > 1;
    put(g, indent);
    put(g, several ? "(" : "");
    put_list(g, rates, ", ");
    put(g, several ? ") := " : " := ");
    tb_mo_print(&g->text, "%s(", g->f->name);
    put_list(g, states, ", ");
    for (int32_t k = g->f->outputs; k < g->f->inputs; k++)
        if (!g->f->variables[k].optional)
            tb_mo_print(&g->text, ", %s = %s", g->f->variables[k].name, g->f->variables[k].name);
    put(g, ");\n");
}

/* ---- declarations ---- */

static void put_shape(mo_integrator *g, int32_t variable, bool given)
{
    const mo_variable *v = &g->f->variables[variable];
    for (int32_t d = 0; d < v->rank; d++) {
        put(g, d > 0 ? ", " : "[");
        if (given)
            tb_mo_print(&g->text, "size(%s0, %d)", v->name, d + 1);
        else
            put(g, ":");
    }
    put(g, v->rank > 0 ? "]" : "");
}

static void declare(mo_integrator *g, const char *role, const char *template)
{
    for (int32_t k = 0; k < g->f->outputs; k++) {
        tb_mo_print(&g->text, "  %sReal ", role);
        put_for(g, template, k);
        put_shape(g, k, strcmp(role, "input ") != 0);
        put(g, ";\n");
    }
}

static void declare_all(mo_integrator *g, tb_function_method method, const char *name)
{
    static const char *const TYPES[] = {"Real", "Integer", "Boolean"};
    static const char *const LOCALS[] = {"start_of_$",      "residual_of_$", "shadow_of_$",
                                         "way_of_$",        "image_of_$",    "half_of_$",
                                         "half_image_of_$", "change_of_$",   "near_rate_of_$"};
    tb_mo_print(&g->text, "\nfunction %s_%s \"n_steps of dt, inline\"\n", name, METHODS[method]);
    declare(g, "input ", "$0");
    for (int32_t k = g->f->outputs; k < g->f->inputs; k++) {
        const mo_variable *v = &g->f->variables[k];
        if (v->optional) continue;
        tb_mo_print(&g->text, "  input %s %s", TYPES[v->base], v->name);
        put_shape(g, k, false);
        put(g, ";\n");
    }
    put(g, "  input Real dt;\n  input Integer n_steps;\n");
    declare(g, "output ", "$");
    put(g, "protected\n");
    declare(g, "", "rate_of_$");
    if (method == TB_FUNCTION_RUNGE_KUTTA_4) declare(g, "", "sum_of_$");
    if (method != TB_FUNCTION_IMPLICIT_EULER) return;
    for (size_t k = 0; k < sizeof LOCALS / sizeof LOCALS[0]; k++) declare(g, "", LOCALS[k]);
    put(g, "  Real error; Real size_of_x; Real length; Real tiny; Real rho; Real rho_before;\n"
           "  Real alpha; Real omega; Boolean solved;\n");
}

/* ---- explicit methods ---- */

static void put_explicit(mo_integrator *g, tb_function_method method)
{
    static const char *const STAGES[] = {"$ + dt / 2 * rate_of_$", "$ + dt / 2 * rate_of_$",
                                         "$ + dt * rate_of_$"};
    put_rates(g, "    ", "rate_of_$", "$");
    if (method == TB_FUNCTION_MIDPOINT) put_rates(g, "    ", "rate_of_$", "$ + dt / 2 * rate_of_$");
    if (method != TB_FUNCTION_RUNGE_KUTTA_4) {
        put_lines(g, "    $ := $ + dt * rate_of_$;");
        return;
    }
    put_lines(g, "    sum_of_$ := rate_of_$;");
    for (int k = 0; k < 3; k++) {
        put_rates(g, "    ", "rate_of_$", STAGES[k]);
        put_lines(g, k < 2 ? "    sum_of_$ := sum_of_$ + 2 * rate_of_$;"
                           : "    sum_of_$ := sum_of_$ + rate_of_$;");
    }
    put_lines(g, "    $ := $ + dt / 6 * sum_of_$;");
}

/* ---- implicit Euler ---- */

/* image := (I - dt J) way, by a difference of f along `way` that is small compared with x */
static void put_image(mo_integrator *g, const char *way, const char *near, const char *image)
{
    put(g, "        length := sqrt(");
    put_product(g, way, way);
    put(g, ");\n        if length == 0 then break; end if;\n"
           "        tiny := 1e-7 * size_of_x / length;\n");
    put_rates(g, "        ", "near_rate_of_$", near);
    put_lines(g, image);
}

static void put_bicgstab(mo_integrator *g)
{
    put_lines(g, "      shadow_of_$ := residual_of_$;\n      way_of_$ := residual_of_$;\n"
                 "      change_of_$ := 0 * residual_of_$;");
    put(g, "      rho := error * error;\n      for krylov in 1:500 loop\n");
    put_image(g, "way_of_$", "$ + tiny * way_of_$",
              "        image_of_$ := way_of_$ - dt / tiny * (near_rate_of_$ - rate_of_$);");
    put(g, "        alpha := rho / (");
    put_product(g, "shadow_of_$", "image_of_$");
    put(g, ");\n");
    put_lines(g, "        change_of_$ := change_of_$ + alpha * way_of_$;\n"
                 "        half_of_$ := residual_of_$ - alpha * image_of_$;");
    put_image(g, "half_of_$", "$ + tiny * half_of_$",
              "        half_image_of_$ := half_of_$ - dt / tiny * (near_rate_of_$ - rate_of_$);");
    put(g, "        omega := (");
    put_product(g, "half_image_of_$", "half_of_$");
    put(g, ") / (");
    put_product(g, "half_image_of_$", "half_image_of_$");
    put(g, ");\n");
    put_lines(g, "        change_of_$ := change_of_$ + omega * half_of_$;\n"
                 "        residual_of_$ := half_of_$ - omega * half_image_of_$;");
    put(g, "        length := sqrt(");
    put_product(g, "residual_of_$", "residual_of_$");
    put(g, ");\n        if length <= 1e-4 * error then break; end if;\n"
           "        rho_before := rho;\n        rho := ");
    put_product(g, "shadow_of_$", "residual_of_$");
    put(g, ";\n");
    put_lines(g, "        way_of_$ := residual_of_$ + rho / rho_before * alpha / omega"
                 " * (way_of_$ - omega * image_of_$);");
    put(g, "      end for;\n");
}

static void put_implicit(mo_integrator *g)
{
    put_lines(g, "    start_of_$ := $;");
    put(g, "    solved := false;\n    for newton in 1:50 loop\n");
    put_rates(g, "      ", "rate_of_$", "$");
    put_lines(g, "      residual_of_$ := start_of_$ + dt * rate_of_$ - $;");
    put(g, "      size_of_x := 1 + sqrt(");
    put_product(g, "$", "$");
    put(g, ");\n      error := sqrt(");
    put_product(g, "residual_of_$", "residual_of_$");
    put(g, ");\n      solved := error <= 1e-12 * size_of_x;\n"
           "      if solved then break; end if;\n");
    put_bicgstab(g);
    put_lines(g, "      $ := $ + change_of_$;");
    put(g, "    end for;\n    assert(solved, \"Newton's method did not converge: dt is too "
           "large\");\n");
}

/* ---- the function ---- */

static tb_status check_rates(const mo_function *f, tb_error *error)
{
    for (int32_t k = 0; k < f->inputs + f->flags + f->outputs; k++)
        if (strchr(f->variables[k].name, '.') != NULL)
            return tb_fail(error, TB_UNSUPPORTED, "'%s' has records", f->name);
    if (f->outputs == 0 || f->outputs > f->inputs)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "'%s' has %d inputs and %d outputs: states come first, and each has a rate",
                       f->name, f->inputs, f->outputs);
    for (int32_t k = 0; k < f->outputs; k++) {
        const mo_variable *x = &f->variables[k], *rate = &f->variables[f->inputs + f->flags + k];
        if (x->base != MO_T_REAL || rate->base != MO_T_REAL || x->rank != rate->rank || x->optional)
            return tb_fail(error, TB_FAILED_PRECONDITION,
                           "output '%s' of '%s' is no rate of its input '%s': expected Real of one "
                           "shape, without a default",
                           rate->name, f->name, x->name);
    }
    return TB_OK;
}

tb_status tb_function_integrator(const tb_function_program *program, int32_t function,
                                 tb_function_method method, char **source, tb_error *error)
{
    *source = NULL;
    if (function < 0 || function >= program->program.count)
        return tb_fail(error, TB_NOT_FOUND, "the program has no function number %d", function);
    if ((unsigned)method >= METHOD_COUNT)
        return tb_fail(error, TB_INVALID_ARGUMENT, "no integrator number %d", (int)method);
    mo_integrator g = {.f = program->program.functions[function]};
    const tb_status status = check_rates(g.f, error);
    if (status != TB_OK) return status;
    const char *last = strrchr(g.f->name, '.');
    declare_all(&g, method, last != NULL ? last + 1 : g.f->name);
    put(&g, "algorithm\n");
    put_lines(&g, "  $ := $0;");
    put(&g, "  for step in 1:n_steps loop\n");
    if (method == TB_FUNCTION_IMPLICIT_EULER)
        put_implicit(&g);
    else
        put_explicit(&g, method);
    put(&g, "  end for;\n");
    if (g.f->on_card) put(&g, "  annotation(gpuFunction = true);\n");
    tb_mo_print(&g.text, "end %s_%s;\n", last != NULL ? last + 1 : g.f->name, METHODS[method]);
    const size_t size = strlen(program->program.text);
    if (!g.text.failed) *source = malloc(size + g.text.bytes.size + 1);
    if (*source != NULL) {
        memcpy(*source, program->program.text, size);
        memcpy(*source + size, g.text.bytes.base, g.text.bytes.size);
        (*source)[size + g.text.bytes.size] = '\0';
    }
    tb_bytes_free(&g.text.bytes);
    return *source != NULL ? TB_OK : tb_fail_memory(error, size, "a source");
}
