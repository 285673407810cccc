/* Output of tribo grasp: a table as results come, JSON lines, a CSV of every trial, a plot. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "grasp/grasp.h"
#include "common/json.h"
#include "common/plot.h"
#include "simulation/report.h"

struct grasp_report {
    const grasp_options *options;
    int32_t copies;
    int64_t grasps, held;
    FILE *csv;
    plot plot;
    bool plotted;
    tb_certificate worst; /* of `counted` trials */
    int64_t counted, uncertified, diverged;
    json_t *hand, *warnings;
};

tb_status grasp_report_begin(const grasp_options *options, int32_t copies, grasp_report **report,
                             tb_error *error)
{
    *report = NULL;
    grasp_report *r = calloc(1, sizeof *r);
    if (r == NULL) return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
    r->options = options;
    r->copies = copies;
    r->warnings = json_array();
    const char *const inputs[] = {options->hand, options->object, options->poses};
    const char *const outputs[] = {options->record, options->plot};
    tb_status status = files_check_outputs(inputs, 3, outputs, 2, error);
    if (status == TB_OK && options->plot != NULL) status = plot_check_path(options->plot, error);
    if (status == TB_OK && options->record != NULL) {
        status = files_create(options->record, &r->csv, error);
        if (status == TB_OK)
            fprintf(r->csv, "grasp,name,trial,verdict,slip_m,drop_time_s,friction,mass_kg,"
                            "epsilon,volume,weakest_margin,contacts,x,y,z,qw,qx,qy,qz,residual,"
                            "penetration_m,steps,reason\n");
    }
    if (status == TB_OK && options->plot != NULL) {
        status = plot_begin(&r->plot, "grasps", "grasp", error);
        r->plotted = status == TB_OK;
        if (r->plotted) {
            int32_t panel = plot_add_panel(&r->plot, "success and its interval", false, false);
            plot_add_series(&r->plot, panel, "held");
            plot_add_series(&r->plot, panel, "lower");
            plot_add_series(&r->plot, panel, "upper");
            panel = plot_add_panel(&r->plot, "slip (m)", true, true);
            plot_add_series(&r->plot, panel, "median slip");
            panel = plot_add_panel(&r->plot, "quality", false, false);
            plot_add_series(&r->plot, panel, "epsilon");
            plot_add_series(&r->plot, panel, "weakest margin");
        }
    }
    if (status != TB_OK) {
        grasp_report_free(r);
        return status;
    }
    if (!options->json && !options->quiet)
        printf("%5s %-14s %-9s %16s %9s %8s %8s %8s %18s %9s  %s\n", "grasp", "name", "verdict",
               copies > 1 ? "held (interval)" : "held", "slip", "drop", "epsilon", "margin",
               "finger forces", "residual", "reason");
    *report = r;
    return TB_OK;
}

/* ---- one result ---- */

static void print_row(const grasp_report *r, const tb_grasp_result *g)
{
    char slip[24], drop[24] = "-", held[40], forces[64] = "-", reason[TB_GRASP_TEXT_SIZE];
    const tb_grasp_trial *first = &g->trials[0];
    tb_grasp_explain(first, reason, sizeof reason);
    if (r->copies > 1)
        snprintf(held, sizeof held, "%3.0f%% (%.0f-%.0f)", 100 * g->success, 100 * g->lower,
                 100 * g->upper);
    else
        snprintf(held, sizeof held, "%s", g->success > 0 ? "yes" : "no");
    if (first->drop_time >= 0) snprintf(drop, sizeof drop, "%.2f s", first->drop_time);
    size_t used = 0;
    for (int32_t i = 0; i < g->number_of_fingers && used + 12 < sizeof forces; i++)
        used += (size_t)snprintf(forces + used, sizeof forces - used, "%s%.3g", i > 0 ? " " : "",
                                 g->fingers[i].force);
    if (g->number_of_fingers > 0) snprintf(forces + used, sizeof forces - used, " N");
    printf("%5d %-14.14s %-9s %16s %9s %8s %8.4f %8.3f %18s %9.1e  %s\n", (int)g->index, g->name,
           tb_grasp_verdict_name(first->verdict), held,
           report_quantity(g->slip, "m", slip, sizeof slip), drop, g->epsilon, g->margin, forces,
           g->certificate.residual, first->verdict == TB_GRASP_HELD ? "" : reason);
}

static json_t *json_fingers(const tb_grasp_result *g)
{
    json_t *fingers = json_array();
    for (int32_t i = 0; i < g->number_of_fingers; i++) {
        json_t *finger = json_object();
        json_object_set_new(finger, "body", json_text(g->fingers[i].body));
        json_object_set_new(finger, "force", json_finite(g->fingers[i].force));
        json_array_append_new(fingers, finger);
    }
    return fingers;
}

static json_t *json_contacts(const tb_grasp_result *g)
{
    json_t *contacts = json_array();
    for (int32_t i = 0; i < g->number_of_contacts; i++) {
        const tb_grasp_contact *c = &g->contacts[i];
        json_t *contact = json_object();
        if (c->body != NULL) json_object_set_new(contact, "body", json_text(c->body));
        json_object_set_new(contact, "position", json_vector(c->position, 3));
        json_object_set_new(contact, "normal", json_vector(c->normal, 3));
        json_object_set_new(contact, "wrench", json_vector(c->wrench, 6));
        json_object_set_new(contact, "friction", json_vector(c->friction, 3));
        if (c->body != NULL) json_object_set_new(contact, "margin", json_finite(c->margin));
        json_array_append_new(contacts, contact);
    }
    return contacts;
}

/* Why a trial has its outcome: in words, and the numbers behind the words. */
static void set_reason(json_t *object, const tb_grasp_trial *t)
{
    char text[TB_GRASP_TEXT_SIZE];
    const tb_grasp_reason *r = &t->reason;
    tb_grasp_explain(t, text, sizeof text);
    json_object_set_new(object, "reason", json_text(text));
    json_object_set_new(object, "stage", json_string(tb_grasp_stage_name(r->stage)));
    json_object_set_new(object, "time", json_finite(r->time));
    json_t *pose = json_object();
    json_object_set_new(pose, "position", json_vector(r->position, 3));
    json_object_set_new(pose, "orientation", json_vector(r->orientation, 4));
    json_object_set_new(object, "tool", pose);
    if (r->hand_body != NULL) {
        json_object_set_new(object, "hand_body", json_text(r->hand_body));
        json_object_set_new(object, "other_body", json_text(r->other_body));
        json_object_set_new(object, "point", json_vector(r->point, 3));
    }
    if (t->verdict == TB_GRASP_COLLIDED)
        json_object_set_new(object, "depth", json_finite(r->depth));
    if (t->verdict == TB_GRASP_DROPPED || t->verdict == TB_GRASP_SLIPPED) {
        json_object_set_new(object, "margin", json_finite(r->margin));
        json_object_set_new(object, "slide_time", json_finite(r->slide_time));
        json_object_set_new(object, "grip", json_finite(r->grip));
        json_object_set_new(object, "press", json_finite(r->press));
        json_object_set_new(object, "lean", json_finite(r->lean));
    }
    if (t->verdict != TB_GRASP_UNCERTIFIED) return;
    json_object_set_new(object, "residual", json_finite(r->residual));
    json_object_set_new(object, "apparent", json_string(tb_grasp_verdict_name(r->apparent)));
}

static json_t *json_trials(const tb_grasp_result *g)
{
    json_t *trials = json_array();
    for (int32_t i = 0; i < g->number_of_trials; i++) {
        const tb_grasp_trial *t = &g->trials[i];
        json_t *trial = json_object();
        json_object_set_new(trial, "outcome", json_string(tb_grasp_verdict_name(t->verdict)));
        set_reason(trial, t);
        json_object_set_new(trial, "slip", json_finite(t->slip));
        json_object_set_new(trial, "drop_time", json_finite(t->drop_time));
        json_object_set_new(trial, "friction", json_finite(t->friction));
        json_object_set_new(trial, "mass", json_finite(t->mass));
        json_object_set_new(trial, "certificate", json_certificate(&t->certificate, false));
        json_array_append_new(trials, trial);
    }
    return trials;
}

/* An element of "grasps": printed as it comes, a line each. */
static void print_json(const grasp_report *r, const tb_grasp_result *g, const tb_grasp_pose *pose)
{
    json_t *object = json_object();
    json_object_set_new(object, "grasp", json_integer(g->index));
    json_object_set_new(object, "name", json_text(g->name));
    json_object_set_new(object, "position", json_vector(pose->position, 3));
    json_object_set_new(object, "orientation", json_vector(pose->orientation, 4));
    json_object_set_new(object, "outcome",
                        json_string(tb_grasp_verdict_name(g->trials[0].verdict)));
    set_reason(object, &g->trials[0]);
    json_object_set_new(object, "uncertified", json_integer(g->uncertified));
    json_object_set_new(object, "success", json_finite(g->success));
    json_object_set_new(object, "success_lower", json_finite(g->lower));
    json_object_set_new(object, "success_upper", json_finite(g->upper));
    json_object_set_new(object, "slip", json_finite(g->slip));
    json_object_set_new(object, "drop_time", json_finite(g->trials[0].drop_time));
    json_object_set_new(object, "approach", json_vector(g->approach, 3));
    json_object_set_new(object, "object_centre", json_vector(g->centre, 3));
    json_object_set_new(object, "object_radius", json_finite(g->radius));
    json_object_set_new(object, "epsilon", json_finite(g->epsilon));
    json_object_set_new(object, "volume", json_finite(g->volume));
    json_object_set_new(object, "weakest_margin", json_finite(g->margin));
    json_object_set_new(object, "fingers", json_fingers(g));
    json_object_set_new(object, "contacts", json_contacts(g));
    json_object_set_new(object, "trials", json_trials(g));
    json_object_set_new(object, "certificate", json_certificate(&g->certificate, false));
    fputs(r->grasps > 1 ? ",\n" : "{\"grasps\":[\n", stdout);
    json_write(stdout, object);
}

/* A name between quotes, quotes in it doubled. */
static void print_cell(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void record(FILE *csv, const tb_grasp_result *g, const tb_grasp_pose *pose)
{
    for (int32_t i = 0; i < g->number_of_trials; i++) {
        const tb_grasp_trial *t = &g->trials[i];
        fprintf(csv, "%d,", (int)g->index);
        print_cell(csv, g->name);
        fprintf(csv, ",%d,%s,%.17g,%.17g,%.17g,%.17g,", (int)i, tb_grasp_verdict_name(t->verdict),
                t->slip, t->drop_time, t->friction, t->mass);
        fprintf(csv, "%.17g,%.17g,%.17g,%d,", g->epsilon, g->volume, g->margin,
                (int)g->number_of_contacts);
        for (int k = 0; k < 3; k++) fprintf(csv, "%.17g,", pose->position[k]);
        for (int k = 0; k < 4; k++) fprintf(csv, "%.17g,", pose->orientation[k]);
        char reason[TB_GRASP_TEXT_SIZE];
        tb_grasp_explain(t, reason, sizeof reason);
        fprintf(csv, "%.3g,%.3g,%lld,", t->certificate.residual, t->certificate.penetration,
                (long long)t->steps);
        print_cell(csv, reason);
        fputc('\n', csv);
    }
}

/* Merges the certificates of the trials that have a verdict by their steps: neither that of a trial
 * that collided nor that of one without a verdict says anything about the others. */
static void merge_certificates(grasp_report *r, const tb_grasp_result *g)
{
    for (int32_t i = 0; i < g->number_of_trials; i++) {
        const tb_grasp_trial *t = &g->trials[i];
        r->uncertified += t->verdict == TB_GRASP_UNCERTIFIED;
        r->diverged += t->verdict == TB_GRASP_DIVERGED;
        if (t->verdict == TB_GRASP_COLLIDED || t->verdict == TB_GRASP_UNCERTIFIED) continue;
        if (r->counted++ == 0)
            r->worst = t->certificate;
        else
            tb_certificate_merge(&r->worst, &t->certificate);
    }
}

void grasp_report_add(grasp_report *r, const tb_grasp_result *g, const tb_grasp_pose *pose)
{
    r->grasps++;
    merge_certificates(r, g);
    r->held += g->trials[0].verdict == TB_GRASP_HELD;
    if (r->options->json)
        print_json(r, g, pose);
    else if (!r->options->quiet)
        print_row(r, g);
    fflush(stdout);
    if (r->csv != NULL) record(r->csv, g, pose);
    if (r->plotted) {
        const double values[] = {g->success, g->lower, g->upper, g->slip, g->epsilon, g->margin};
        plot_sample(&r->plot, g->index, values);
    }
}

/* ---- the end ---- */

static void print_summary(const grasp_report *r, const tb_grasp_progress *p, double seconds,
                          const char *model_sha256)
{
    char took[32];
    printf("\n%lld of %lld grasps held", (long long)r->held, (long long)r->grasps);
    if (r->copies > 1)
        printf("; %lld of %lld trials", (long long)p->trials_held, (long long)p->trials_done);
    if (r->uncertified > 0) printf("; %lld trials without a verdict", (long long)r->uncertified);
    printf(" in %s", report_quantity(seconds, "s", took, sizeof took));
    if (seconds > 0)
        printf(": %.4g trials/s, %.4g world steps/s", (double)p->trials_done / seconds,
               (double)p->world_steps_done / seconds);
    printf("\nworst residual %.2e, penetration %.2e m; model %.12s\n", r->worst.residual,
           r->worst.penetration, model_sha256);
    if (r->options->record != NULL) printf("recorded in %s\n", r->options->record);
    if (r->options->plot != NULL) printf("plotted in %s\n", r->options->plot);
}

/* The members behind "grasps". */
static void print_json_summary(grasp_report *r, const tb_grasp_progress *p, double seconds,
                               const char *model_sha256)
{
    json_t *object = json_object();
    json_object_set_new(object, "number_of_grasps", json_integer(r->grasps));
    json_object_set_new(object, "grasps_held", json_integer(r->held));
    json_object_set_new(object, "trials", json_integer(p->trials_done));
    json_object_set_new(object, "trials_held", json_integer(p->trials_held));
    json_object_set_new(object, "trials_uncertified", json_integer(r->uncertified));
    json_object_set_new(object, "world_steps", json_integer(p->world_steps_done));
    json_object_set_new(object, "seconds", json_finite(seconds));
    json_object_set_new(object, "model_sha256", json_text(model_sha256));
    json_object_set(object, "hand", r->hand != NULL ? r->hand : json_null());
    json_object_set(object, "warnings", r->warnings);
    json_object_set_new(object, "certificate", json_certificate(&r->worst, false));
    fputs(r->grasps > 0 ? "\n],\n" : "{\"grasps\":[],\n", stdout);
    json_write_members(stdout, object);
    fputs("}\n", stdout);
}

json_t *grasp_json_hand(const tb_hand_info *hand)
{
    json_t *object = json_object(), *controls = json_array();
    json_object_set_new(object, "profile", json_text(hand->profile));
    json_object_set_new(object, "base_body", json_text(hand->base));
    json_object_set_new(object, "tool_position", json_vector(hand->tool_position, 3));
    json_object_set_new(object, "tool_orientation", json_vector(hand->tool_orientation, 4));
    json_object_set_new(object, "axis", json_vector(hand->axis, 3));
    json_object_set_new(object, "opening", json_finite(hand->opening));
    json_object_set_new(object, "least_opening", json_finite(hand->least_opening));
    for (int32_t i = 0; i < hand->number_of_controls; i++) {
        const tb_hand_control *c = &hand->controls[i];
        json_t *control = json_object();
        json_object_set_new(control, "actuator", json_text(c->actuator));
        json_object_set_new(control, "open", json_finite(c->open));
        json_object_set_new(control, "close", json_finite(c->close));
        json_object_set_new(control, "source", json_string(tb_control_source_name(c->source)));
        json_array_append_new(controls, control);
    }
    json_object_set_new(object, "controls", controls);
    return object;
}

void grasp_report_warn(grasp_report *r, const char *warning)
{
    json_array_append_new(r->warnings, json_text(warning));
    if (!r->options->quiet) fprintf(stderr, "tribo: warning: %s\n", warning);
}

void grasp_report_hand(grasp_report *r, const tb_hand_info *hand)
{
    json_decref(r->hand);
    r->hand = grasp_json_hand(hand);
}

bool grasp_report_certified(const grasp_report *r, tb_error *error)
{
    if (r->uncertified > 0)
        cli_fail(error, TB_NOT_CONVERGED, "", 0, "uncertified",
                 "%lld trials have no verdict: a step missed the tolerance",
                 (long long)r->uncertified);
    else if (r->diverged > 0)
        cli_fail(error, TB_DIVERGED, "", 0, "diverged", "%lld trials diverged",
                 (long long)r->diverged);
    return r->uncertified == 0 && r->diverged == 0;
}

tb_status grasp_report_end(grasp_report *r, const tb_grasp_progress *done, double seconds,
                           const char *model_sha256, tb_error *error)
{
    tb_status status = TB_OK;
    if (r->csv != NULL) status = files_close(r->csv, r->options->record, error);
    r->csv = NULL;
    if (status == TB_OK && r->plotted) status = plot_write(&r->plot, r->options->plot, error);
    if (r->options->json)
        print_json_summary(r, done, seconds, model_sha256);
    else if (!r->options->quiet)
        print_summary(r, done, seconds, model_sha256);
    return status;
}

void grasp_report_free(grasp_report *r)
{
    if (r == NULL) return;
    files_abandon(r->csv, r->options->record);
    plot_free(&r->plot);
    json_decref(r->hand);
    json_decref(r->warnings);
    free(r);
}
