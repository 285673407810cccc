/* Recordings: see recording.h. Frames lie packed one after the other: a head, the poses, the contacts,
 * all in little endian as the machine has them. */
#include "wire/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { POSE_NUMBERS = 7, RECORDING_VERSION = 1 };
static const char MAGIC[8] = "TRIBOREC";
static const double USUAL_INTERVAL_S = 1.0 / 30;

typedef struct frame_head {
    double time, residual, penetration, energy;
    int64_t step;
    int32_t iterations, outcome, contacts, reserved;
} frame_head;

typedef struct frame_contact {
    int32_t shapes[2];
    float position[3], normal[3], force[3], gap;
    uint8_t status, law, reserved[2];
} frame_contact;

typedef struct file_head {
    char magic[8];
    int32_t version, world, bodies, frames;
    double interval, next;
    uint64_t maximum;
} file_head;

static size_t poses_size(int32_t bodies)
{
    return (size_t)bodies * POSE_NUMBERS * sizeof(float);
}

/* A multiple of 8: heads are aligned. */
static size_t frame_size(int32_t bodies, int32_t contacts)
{
    const size_t size =
        sizeof(frame_head) + poses_size(bodies) + (size_t)contacts * sizeof(frame_contact);
    return (size + 7) / 8 * 8;
}

static frame_head head_of(const td_recording *r, int32_t frame)
{
    frame_head head;
    memcpy(&head, r->bytes + r->starts[frame], sizeof head);
    return head;
}

/* ---- making ---- */

tb_status td_recording_create(const Tribo__V1__RecordOptions *m, const char *field, int32_t worlds,
                              int32_t bodies, td_recording **made, tb_error *error)
{
    char name[TB_ERROR_NAME_SIZE];
    const uint64_t maximum = m->maximum_bytes == 0 ? TD_RECORDING_USUAL : m->maximum_bytes;
    *made = NULL;
    snprintf(name, sizeof name, "%s.%s", field,
             !(m->interval >= 0 && isfinite(m->interval)) ? "interval"
             : m->world < 0 || m->world >= worlds         ? "world"
                                                          : "maximum_bytes");
    if (!(m->interval >= 0 && isfinite(m->interval)))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                             "%s is %g s, expected a positive number, or 0 for 1/30", name,
                             m->interval);
    if (m->world < 0 || m->world >= worlds)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, name, "%s is %d, the session has %d", name,
                             (int)m->world, (int)worlds);
    if (maximum < TD_RECORDING_LEAST || maximum > INT32_MAX)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                             "%s is %llu, expected %d to %d, or 0 for %d", name,
                             (unsigned long long)maximum, (int)TD_RECORDING_LEAST, (int)INT32_MAX,
                             (int)TD_RECORDING_USUAL);
    td_recording *r = calloc(1, sizeof *r);
    if (r == NULL) return tb_fail_memory(error, sizeof *r, "a recording");
    r->world = m->world;
    r->bodies = bodies;
    r->interval = m->interval > 0 ? m->interval : USUAL_INTERVAL_S;
    r->next = -INFINITY;
    r->maximum = maximum;
    *made = r;
    return TB_OK;
}

void td_recording_destroy(td_recording *r)
{
    if (r == NULL) return;
    free(r->bytes);
    free(r->starts);
    free(r);
}

/* ---- adding ---- */

bool td_recording_due(const td_recording *r, double time)
{
    /* half a millionth of an interval: sums of dt round */
    if (r->frames == 0 || time >= r->next - 1e-6 * r->interval) return true;
    return time < head_of(r, r->frames - 1).time;
}

/* Every second frame goes, the first one stays. */
static void thin(td_recording *r)
{
    size_t size = 0;
    int32_t kept = 0;
    for (int32_t i = 0; i < r->frames; i += 2) {
        const size_t begin = r->starts[i], end = i + 1 < r->frames ? r->starts[i + 1] : r->size;
        memmove(r->bytes + size, r->bytes + begin, end - begin);
        r->starts[kept++] = size;
        size += end - begin;
    }
    r->frames = kept;
    r->size = size;
    r->interval *= 2;
    r->next = head_of(r, kept - 1).time + r->interval;
}

static bool make_room(td_recording *r, size_t size)
{
    if (size > r->maximum) return false;
    while (r->size + size > r->maximum && r->frames > 1) thin(r);
    if (r->size + size > r->maximum) r->frames = 0, r->size = 0;
    if (r->size + size > r->capacity) {
        size_t capacity = 2 * (r->size + size);
        if (capacity > r->maximum) capacity = r->maximum;
        unsigned char *grown = realloc(r->bytes, capacity);
        if (grown == NULL) return false;
        r->bytes = grown;
        r->capacity = capacity;
    }
    if (r->frames == r->start_capacity) {
        const int32_t capacity = 2 * r->start_capacity + 64;
        size_t *grown = realloc(r->starts, (size_t)capacity * sizeof *grown);
        if (grown == NULL) return false;
        r->starts = grown;
        r->start_capacity = capacity;
    }
    return true;
}

static void put_poses(const tb_state *state, int32_t bodies, unsigned char *to)
{
    for (int32_t b = 0; b < bodies; b++, to += POSE_NUMBERS * sizeof(float)) {
        tb_body_motion motion;
        float pose[POSE_NUMBERS] = {0};
        if (tb_state_body_motion(state, b, &motion) == TB_OK) {
            for (int k = 0; k < 3; k++) pose[k] = (float)motion.position[k];
            for (int k = 0; k < 4; k++) pose[3 + k] = (float)motion.orientation[k];
        }
        memcpy(to, pose, sizeof pose);
    }
}

static void put_contact(const tb_state *state, int32_t index, double dt, unsigned char *to)
{
    tb_contact_info info = {0};
    frame_contact c = {0};
    tb_state_contact(state, index, &info);
    c.shapes[0] = info.shape_a;
    c.shapes[1] = info.shape_b;
    for (int k = 0; k < 3; k++) {
        c.position[k] = (float)info.position[k];
        c.normal[k] = (float)info.normal[k];
        c.force[k] =
            (float)((info.impulse[0] * info.normal[k] + info.impulse[1] * info.tangent1[k] +
                     info.impulse[2] * info.tangent2[k]) /
                    dt);
    }
    c.gap = (float)info.gap;
    c.status = (uint8_t)td_wire_contact_status(info.status);
    c.law = (uint8_t)info.kind;
    memcpy(to, &c, sizeof c);
}

void td_recording_add(td_recording *r, const tb_state *state, double dt)
{
    const int32_t contacts = tb_state_number_of_contacts(state);
    const tb_certificate *certificate = tb_state_certificate(state);
    const size_t size = frame_size(r->bodies, contacts);
    const frame_head head = {.time = tb_state_time(state),
                             .step = tb_state_steps(state),
                             .residual = certificate->residual,
                             .penetration = certificate->penetration,
                             .energy = certificate->energy,
                             .iterations = certificate->iterations,
                             .outcome = (int32_t)td_wire_outcome(certificate->status),
                             .contacts = contacts};
    /* after thinning, the next frame may be due later */
    if (!make_room(r, size) || !td_recording_due(r, head.time)) return;
    unsigned char *at = r->bytes + r->size;
    memset(at, 0, size);
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    put_poses(state, r->bodies, at);
    at += poses_size(r->bodies);
    for (int32_t i = 0; i < contacts; i++)
        put_contact(state, i, dt, at + (size_t)i * sizeof(frame_contact));
    r->starts[r->frames++] = r->size;
    r->size += size;
    r->next = head.time + r->interval;
    r->changed = true;
}

/* ---- bytes ---- */

tb_status td_recording_pack(td_recording *r, unsigned char **bytes, size_t *size, tb_error *error)
{
    const file_head head = {.version = RECORDING_VERSION,
                            .world = r->world,
                            .bodies = r->bodies,
                            .frames = r->frames,
                            .interval = r->interval,
                            .next = r->next,
                            .maximum = r->maximum};
    *size = sizeof head + r->size;
    *bytes = malloc(*size);
    if (*bytes == NULL) return tb_fail_memory(error, *size, "a recording");
    memcpy(*bytes, &head, sizeof head);
    memcpy(*bytes, MAGIC, sizeof MAGIC);
    if (r->size > 0) memcpy(*bytes + sizeof head, r->bytes, r->size);
    r->changed = false;
    return TB_OK;
}

/* Finds where frames begin; false if they do not fill the bytes exactly. */
static bool find_frames(td_recording *r)
{
    size_t at = 0;
    for (int32_t i = 0; i < r->frames; i++) {
        frame_head head;
        if (r->size - at < sizeof head) return false;
        r->starts[i] = at;
        memcpy(&head, r->bytes + at, sizeof head);
        if (head.contacts < 0 || (size_t)head.contacts > r->size / sizeof(frame_contact))
            return false;
        const size_t size = frame_size(r->bodies, head.contacts);
        if (size > r->size - at) return false;
        at += size;
    }
    return at == r->size;
}

tb_status td_recording_unpack(const unsigned char *bytes, size_t size, td_recording **read,
                              tb_error *error)
{
    file_head head;
    *read = NULL;
    if (size < sizeof head) return tb_fail(error, TB_DATA_LOSS, "a recording is cut short");
    memcpy(&head, bytes, sizeof head);
    const size_t content = size - sizeof head;
    if (memcmp(head.magic, MAGIC, sizeof MAGIC) != 0 || head.version != RECORDING_VERSION)
        return tb_fail(error, TB_DATA_LOSS, "a recording has version %d, this build reads %d",
                       (int)head.version, (int)RECORDING_VERSION);
    if (head.bodies < 1 || head.frames < 0 || head.world < 0 ||
        (size_t)head.frames > content / sizeof(frame_head))
        return tb_fail(error, TB_DATA_LOSS, "a recording's head is damaged");
    td_recording *r = calloc(1, sizeof *r);
    unsigned char *copy = malloc(content + 1);
    size_t *starts = calloc((size_t)head.frames + 1, sizeof *starts);
    if (r == NULL || copy == NULL || starts == NULL) {
        free(r);
        free(copy);
        free(starts);
        return tb_fail_memory(error, content, "a recording");
    }
    memcpy(copy, bytes + sizeof head, content);
    *r = (td_recording){.world = head.world,
                        .bodies = head.bodies,
                        .frames = head.frames,
                        .interval = head.interval,
                        .next = head.next,
                        .maximum = head.maximum,
                        .bytes = copy,
                        .size = content,
                        .capacity = content,
                        .starts = starts,
                        .start_capacity = head.frames + 1};
    if (find_frames(r)) {
        *read = r;
        return TB_OK;
    }
    td_recording_destroy(r);
    return tb_fail(error, TB_DATA_LOSS, "a recording's frames are damaged");
}

/* ---- pages ---- */

/* Frames of the page, and their contacts in all. */
static int32_t count_frames(const td_recording *r, int32_t first, int32_t count, uint64_t limit,
                            int32_t *contacts)
{
    int32_t n = 0;
    *contacts = 0;
    for (; n < count && first + n < r->frames; n++) {
        const int32_t frame = first + n;
        const size_t end = frame + 1 < r->frames ? r->starts[frame + 1] : r->size;
        if (n > 0 && end - r->starts[first] > limit) break;
        *contacts += head_of(r, frame).contacts;
    }
    return n;
}

static void *column(td_wire *wire, Tribo__V1__Array **into, Tribo__V1__DataType dtype, size_t size,
                    int32_t rows, int32_t columns)
{
    void *numbers = td_wire_take(wire, (size_t)rows * (size_t)(columns > 0 ? columns : 1) * size);
    if (numbers != NULL) *into = td_wire_array(wire, dtype, numbers, rows, columns);
    return numbers;
}

#define COLUMN(into, type, DTYPE, rows, columns)                                                   \
    (type *)column(wire, &(into), TRIBO__V1__DATA_TYPE__DATA_TYPE_##DTYPE, sizeof(type), rows,     \
                   columns)

static void fill_figures(td_wire *wire, const td_recording *r, int32_t first, int32_t n,
                         Tribo__V1__GetRecordingResponse *out)
{
    double *times = COLUMN(out->times, double, FLOAT64, n, 0);
    int64_t *steps = COLUMN(out->steps, int64_t, INT64, n, 0);
    double *residuals = COLUMN(out->residuals, double, FLOAT64, n, 0);
    double *penetrations = COLUMN(out->penetrations, double, FLOAT64, n, 0);
    double *energies = COLUMN(out->energies, double, FLOAT64, n, 0);
    int32_t *iterations = COLUMN(out->iterations, int32_t, INT32, n, 0);
    uint8_t *outcomes = COLUMN(out->outcomes, uint8_t, UINT8, n, 0);
    int32_t *counts = COLUMN(out->contact_counts, int32_t, INT32, n, 0);
    float *poses = COLUMN(out->poses, float, FLOAT32, n * r->bodies, POSE_NUMBERS);
    int64_t *shape = td_wire_take(wire, 3 * sizeof *shape);
    for (int32_t i = 0; i < n && !wire->failed; i++) {
        const frame_head head = head_of(r, first + i);
        times[i] = head.time;
        steps[i] = head.step;
        residuals[i] = head.residual;
        penetrations[i] = head.penetration;
        energies[i] = head.energy;
        iterations[i] = head.iterations;
        outcomes[i] = (uint8_t)head.outcome;
        counts[i] = head.contacts;
        memcpy(poses + (size_t)i * (size_t)r->bodies * POSE_NUMBERS,
               r->bytes + r->starts[first + i] + sizeof head, poses_size(r->bodies));
    }
    if (wire->failed) return;
    shape[0] = n;
    shape[1] = r->bodies;
    shape[2] = POSE_NUMBERS;
    out->poses->shape = shape;
    out->poses->n_shape = 3;
}

static void fill_contacts(td_wire *wire, const td_recording *r, int32_t first, int32_t n,
                          int32_t contacts, Tribo__V1__GetRecordingResponse *out)
{
    int32_t *shapes = COLUMN(out->shapes, int32_t, INT32, contacts, 2);
    float *positions = COLUMN(out->positions, float, FLOAT32, contacts, 3);
    float *normals = COLUMN(out->normals, float, FLOAT32, contacts, 3);
    float *forces = COLUMN(out->forces, float, FLOAT32, contacts, 3);
    float *gaps = COLUMN(out->gaps, float, FLOAT32, contacts, 0);
    uint8_t *statuses = COLUMN(out->statuses, uint8_t, UINT8, contacts, 0);
    uint8_t *laws = COLUMN(out->laws, uint8_t, UINT8, contacts, 0);
    if (wire->failed) return;
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        const frame_head head = head_of(r, first + i);
        const unsigned char *from =
            r->bytes + r->starts[first + i] + sizeof head + poses_size(r->bodies);
        for (int32_t k = 0; k < head.contacts; k++, at++) {
            frame_contact c;
            memcpy(&c, from + (size_t)k * sizeof c, sizeof c);
            memcpy(shapes + 2 * at, c.shapes, sizeof c.shapes);
            memcpy(positions + 3 * at, c.position, sizeof c.position);
            memcpy(normals + 3 * at, c.normal, sizeof c.normal);
            memcpy(forces + 3 * at, c.force, sizeof c.force);
            gaps[at] = c.gap;
            statuses[at] = c.status;
            laws[at] = c.law;
        }
    }
}

void td_recording_fill(td_wire *wire, const td_recording *r, int32_t first, int32_t count,
                       uint64_t limit, Tribo__V1__GetRecordingResponse *out)
{
    int32_t contacts = 0;
    const int32_t n = count_frames(r, first, count, limit, &contacts);
    out->world = r->world;
    out->frames = r->frames;
    out->interval = r->interval;
    out->first = first;
    fill_figures(wire, r, first, n, out);
    fill_contacts(wire, r, first, n, contacts, out);
}
