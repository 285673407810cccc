/* Writes one row a step, as CSV or as JSON lines. See record.h. */
#include "run/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "common/json.h"

struct record {
    FILE *file;
    char *path;
    const name_list *bodies, *joints;
    bool lines; /* JSON lines, else CSV */
};

/* ---- as JSON ---- */

json_t *record_bodies(const tb_state *state, const name_list *bodies)
{
    json_t *object = json_object();
    for (int32_t i = 1; i < bodies->count; i++) {
        tb_body_motion motion;
        if (tb_state_body_motion(state, i, &motion) != TB_OK) continue;
        json_t *body = json_object();
        json_object_set_new(body, "position", json_vector(motion.position, 3));
        json_object_set_new(body, "orientation", json_vector(motion.orientation, 4));
        json_object_set_new(body, "linear_velocity", json_vector(motion.linear_velocity, 3));
        json_object_set_new(body, "angular_velocity", json_vector(motion.angular_velocity, 3));
        json_object_set_new(object, bodies->names[i], body);
    }
    return object;
}

json_t *record_joints(const tb_state *state, const name_list *joints)
{
    const tb_model *model = tb_state_model(state);
    const double *q = tb_state_q(state), *u = tb_state_u(state);
    json_t *object = json_object();
    for (int32_t i = 0; i < joints->count; i++) {
        tb_joint_info info;
        if (tb_model_joint_info(model, i, &info) != TB_OK) continue;
        json_t *joint = json_object();
        json_object_set_new(joint, "position",
                            info.coordinates == 1
                                ? json_finite(q[info.coordinate])
                                : json_vector(q + info.coordinate, info.coordinates));
        json_object_set_new(joint, "velocity",
                            info.dofs == 1 ? json_finite(u[info.dof])
                                           : json_vector(u + info.dof, info.dofs));
        json_object_set_new(object, joints->names[i], joint);
    }
    return object;
}

static bool write_line(record *r, const simulation *s)
{
    const tb_state *state = s->worlds[0];
    json_t *object = json_object();
    json_object_set_new(object, "time", json_finite(tb_state_time(state)));
    json_object_set_new(object, "contacts", json_integer(tb_state_number_of_contacts(state)));
    json_object_set_new(object, "bodies", record_bodies(state, r->bodies));
    json_object_set_new(object, "joints", record_joints(state, r->joints));
    json_object_set_new(object, "certificate", json_certificate(&s->last, s->report_energy));
    return json_print(r->file, object);
}

/* ---- as CSV ---- */

static void write_columns(FILE *file, const char *name, const char *stem, int32_t count)
{
    char suffix[48];
    for (int32_t i = 0; i < count; i++) {
        snprintf(suffix, sizeof suffix, count == 1 ? ".%s" : ".%s%d", stem, (int)i);
        name_write_csv(file, name, suffix);
    }
}

static void write_header(record *r, const tb_model *model)
{
    static const char *const PARTS[] = {".x",  ".y",  ".z",  ".qw", ".qx", ".qy", ".qz",
                                        ".vx", ".vy", ".vz", ".wx", ".wy", ".wz"};
    fputs("time", r->file);
    for (int32_t i = 1; i < r->bodies->count; i++)
        for (size_t k = 0; k < sizeof PARTS / sizeof PARTS[0]; k++)
            name_write_csv(r->file, r->bodies->names[i], PARTS[k]);
    for (int32_t i = 0; i < r->joints->count; i++) {
        tb_joint_info info = {0};
        tb_model_joint_info(model, i, &info);
        write_columns(r->file, r->joints->names[i], "position", info.coordinates);
        write_columns(r->file, r->joints->names[i], "velocity", info.dofs);
    }
    fputs(",contacts,status,residual,penetration,cone_error,complementarity_error,closure_error,"
          "energy,energy_change,rows,iterations\n",
          r->file);
}

/* 17 digits; an empty field for a number that is not finite. */
static void write_number(FILE *file, double value)
{
    fputc(',', file);
    if (isfinite(value)) fprintf(file, "%.17g", value);
}

static void write_numbers(FILE *file, const double *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) write_number(file, values[i]);
}

static void write_row(record *r, const simulation *s)
{
    const tb_state *state = s->worlds[0];
    const tb_certificate *c = &s->last;
    const double *q = tb_state_q(state), *u = tb_state_u(state);
    fprintf(r->file, "%.17g", tb_state_time(state));
    for (int32_t i = 1; i < r->bodies->count; i++) {
        tb_body_motion motion;
        memset(&motion, 0, sizeof motion);
        tb_state_body_motion(state, i, &motion);
        write_numbers(r->file, motion.position, 3);
        write_numbers(r->file, motion.orientation, 4);
        write_numbers(r->file, motion.linear_velocity, 3);
        write_numbers(r->file, motion.angular_velocity, 3);
    }
    for (int32_t i = 0; i < r->joints->count; i++) {
        tb_joint_info info = {0};
        tb_model_joint_info(s->model, i, &info);
        write_numbers(r->file, q + info.coordinate, info.coordinates);
        write_numbers(r->file, u + info.dof, info.dofs);
    }
    fprintf(r->file, ",%d,%s", (int)tb_state_number_of_contacts(state), tb_status_name(c->status));
    const double numbers[] = {c->residual,
                              c->penetration,
                              c->cone_error,
                              c->complementarity_error,
                              c->closure_error,
                              s->report_energy ? c->energy : NAN,
                              s->report_energy ? c->energy_change : NAN};
    write_numbers(r->file, numbers, (int32_t)(sizeof numbers / sizeof numbers[0]));
    fprintf(r->file, ",%d,%d\n", (int)c->rows, (int)c->iterations);
}

/* ---- the recording ---- */

tb_status record_open(const char *path, const simulation *s, const name_list *bodies,
                      const name_list *joints, record **recording, tb_error *error)
{
    const bool lines = files_has_extension(path, ".jsonl");
    if (!lines && !files_has_extension(path, ".csv"))
        return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, "record",
                        "a recording ends in .csv or .jsonl");
    record *r = calloc(1, sizeof *r);
    char *copy = strdup(path);
    if (r == NULL || copy == NULL) {
        free(r);
        free(copy);
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL, "no memory");
    }
    *r = (record){.path = copy, .bodies = bodies, .joints = joints, .lines = lines};
    const tb_status status = files_create(path, &r->file, error);
    if (status != TB_OK) {
        free(copy);
        free(r);
        return status;
    }
    if (!lines) write_header(r, s->model);
    *recording = r;
    return TB_OK;
}

tb_status record_step(record *r, const simulation *s, tb_error *error)
{
    bool written = true;
    if (r->lines)
        written = write_line(r, s);
    else
        write_row(r, s);
    if (written && !ferror(r->file)) return TB_OK;
    return cli_fail(error, TB_DATA_LOSS, r->path, 0, NULL, "could not be written");
}

void record_abandon(record *r)
{
    if (r == NULL) return;
    files_abandon(r->file, r->path);
    free(r->path);
    free(r);
}

tb_status record_close(record *r, tb_error *error)
{
    if (r == NULL) return TB_OK;
    const tb_status status = files_close(r->file, r->path, error);
    free(r->path);
    free(r);
    return status;
}
