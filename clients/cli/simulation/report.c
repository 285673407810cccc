/* Prints positions, velocities and the certificate after a run. See report.h. */
#include "simulation/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LINES = 16, NAME_WIDTH = 20 };

const char *report_quantity(double value, const char *unit, char *text, size_t size)
{
    static const struct {
        double factor;
        const char *prefix;
    } PREFIXES[] = {{1e9, "G"},         {1e6, "M"},  {1e3, "k"},   {1, ""},      {1e-3, "m"},
                    {1e-6, "\xc2\xb5"}, {1e-9, "n"}, {1e-12, "p"}, {1e-15, "f"}, {1e-18, "a"}};
    enum { COUNT = sizeof PREFIXES / sizeof PREFIXES[0] };
    const double absolute = fabs(value);
    if (value == 0) {
        snprintf(text, size, "0 %s", unit);
    } else if (!isfinite(value)) {
        snprintf(text, size, "unknown");
    } else if (absolute < PREFIXES[COUNT - 1].factor || absolute >= 1e12) {
        snprintf(text, size, "%.3g %s", value, unit);
    } else {
        int i = 0;
        while (i < COUNT - 1 && absolute < 0.9995 * PREFIXES[i].factor) i++;
        snprintf(text, size, "%.3g %s%s", value / PREFIXES[i].factor, PREFIXES[i].prefix, unit);
    }
    return text;
}

static double length3(const double v[3])
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

static void report_bodies(const tb_state *state, const name_list *bodies)
{
    if (bodies->count <= 1) return;
    printf("\n%-*s %30s %12s %12s\n", NAME_WIDTH, "body", "position (m)", "m/s", "rad/s");
    for (int32_t i = 1; i < bodies->count; i++) {
        tb_body_motion motion;
        if (i > MOST_LINES) {
            printf("... and %d more (--json has all)\n", (int)(bodies->count - i));
            break;
        }
        if (tb_state_body_motion(state, i, &motion) != TB_OK) continue;
        printf("%-*.*s %10.5f%10.5f%10.5f %12.3g %12.3g\n", NAME_WIDTH, NAME_WIDTH,
               bodies->names[i], motion.position[0], motion.position[1], motion.position[2],
               length3(motion.linear_velocity), length3(motion.angular_velocity));
    }
}

/* Joints of one dof: the others are in the table of bodies. */
static void report_joints(const tb_state *state, const name_list *joints)
{
    int lines = 0;
    for (int32_t i = 0; i < joints->count; i++) {
        tb_joint_info info;
        if (tb_model_joint_info(tb_state_model(state), i, &info) != TB_OK || info.dofs != 1)
            continue;
        if (lines == 0)
            printf("\n%-*s %12s %12s\n", NAME_WIDTH, "joint", "m or rad", "m/s or rad/s");
        if (lines++ == MOST_LINES) {
            printf("... and more (--json has all)\n");
            break;
        }
        printf("%-*.*s %12.6g %12.3g\n", NAME_WIDTH, NAME_WIDTH, joints->names[i],
               tb_state_q(state)[info.coordinate], tb_state_u(state)[info.dof]);
    }
}

void report_state(const simulation *s, const name_list *bodies, const name_list *joints)
{
    report_bodies(s->worlds[0], bodies);
    report_joints(s->worlds[0], joints);
}

static void report_line(const char *label, double value, const char *unit)
{
    char text[48];
    printf("  %-18s %s\n", label, report_quantity(value, unit, text, sizeof text));
}

/* Where the change comes from, the sources that are not nothing. */
static void report_energies(const tb_certificate *c)
{
    const struct {
        const char *label;
        double value;
    } SOURCES[] = {{"  recovery", c->energy_recovery}, {"  motors", c->energy_motors},
                   {"  damping", c->energy_damping},   {"  friction", c->energy_friction},
                   {"  applied", c->energy_applied},   {"  step error", c->energy_unexplained}};
    for (size_t i = 0; i < sizeof SOURCES / sizeof SOURCES[0]; i++)
        if (SOURCES[i].value != 0) report_line(SOURCES[i].label, SOURCES[i].value, "J");
}

void report_certificate(const simulation *s)
{
    const tb_certificate *c = &s->merged;
    const double each = (double)(s->steps > 0 ? s->steps : 1) * s->number_of_worlds;
    printf("\ncertificate: %s, the worst of %lld steps", tb_status_text(c->status),
           (long long)s->steps);
    if (s->number_of_worlds > 1) printf(" of %d worlds", (int)s->number_of_worlds);
    printf("\n  %-18s %.3g\n", "residual", c->residual);
    report_line("penetration", c->penetration, "m");
    report_line("cone error", c->cone_error, "N s");
    report_line("complementarity", c->complementarity_error, "J");
    report_line("closure error", c->closure_error, "m");
    if (s->report_energy) {
        report_line("energy change", c->energy_change, "J");
        report_energies(c);
    }
    printf("  %-18s %s, %.1f iterations a step\n", "solver", c->solver, c->iterations / each);
    if (c->known_statuses > 0)
        printf(
            "  %-18s %.2f %% of statuses kept, %.2f linear solves and %.2f factorizations a step, "
            "%lld resets\n",
            "warm", 100.0 * (double)c->kept_statuses / (double)c->known_statuses,
            (double)c->linear_solves / each, (double)c->factorizations / each,
            (long long)c->resets);
    printf("  %-18s %d, %d rows in the last step\n", "contacts", (int)s->last.contacts,
           (int)s->last.rows);
    if (c->asleep > 0)
        printf("  %-18s %d trees of bodies at the end of the last step\n", "asleep",
               (int)s->last.asleep);
    if (c->flags & TB_CERTIFICATE_HALVED) printf("  omega was halved at least once\n");
    if (c->flags & TB_CERTIFICATE_DEGENERATE)
        printf("  a pair of shapes had no well-defined normal\n");
    if (c->flags & TB_CERTIFICATE_INFEASIBLE) {
        char text[256];
        tb_fault_describe(s->model, &c->worst_fault, text, sizeof text);
        printf("  %-18s %s", "infeasible", text);
        if (c->faults > 1) printf(" (the worst of %d in a step)", (int)c->faults);
        printf("\n");
    }
}
