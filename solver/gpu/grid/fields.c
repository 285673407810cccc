/* Fields of soft bodies on a GPU: the host's side. All arrays of a world lie in one piece of the card's memory,
 * from its opening to its end. */
#include "gpu/grid/fields.h"

#include <stdlib.h>
#include <string.h>

static const size_t ARRAY_ALIGNMENT = 256;

/* The next array, at `memory` + *used; NULL memory: only its size counts. */
static void *take(char *memory, size_t *used, size_t count, size_t size)
{
    char *at = memory != NULL ? memory + *used : NULL;
    *used += (count * size + ARRAY_ALIGNMENT - 1) / ARRAY_ALIGNMENT * ARRAY_ALIGNMENT;
    return at;
}

static size_t samples_of(const tb_soft_solid *s)
{
    if (s->kind != TB_SOFT_MESH) return 0;
    const int32_t *n = s->samples.nodes;
    return (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
}

/* Arrays of a field; NULL memory: only their size counts. */
static void lay_out_field(size_t nodes, bool held, char *memory, size_t *used, tb_soft_field *f)
{
    const size_t real = sizeof(double);
    f->X = take(memory, used, 3 * nodes, real);
    f->v = take(memory, used, 3 * nodes, real);
    f->mass = take(memory, used, nodes, real);
    f->depth = take(memory, used, nodes, real);
    f->octant = take(memory, used, 8 * nodes, real);
    f->layer = take(memory, used, nodes, 1);
    f->held = held ? take(memory, used, nodes, 1) : NULL;
}

/* Arrays of one body. */
static void lay_out_body(const tb_soft_card_scene *scene, int32_t body, char *memory, size_t *used,
                         tb_soft_field *f, tb_gpu_soft_scratch *s)
{
    const size_t n = scene->nodes, real = sizeof(double);
    const int32_t *nodes = scene->space.lattice.nodes;
    const size_t rows = (size_t)nodes[1] * (size_t)nodes[2];
    const size_t runs = (size_t)(nodes[0] + TB_SOFT_RUN - 1) / TB_SOFT_RUN;
    memset(f, 0, sizeof *f);
    memset(s, 0, sizeof *s);
    lay_out_field(n, scene->body[body].clamped, memory, used, f);
    /* forces of cells and the arrays of transport share their memory */
    const size_t shared = *used;
    s->cell_force = take(memory, used, 24 * n, real);
    size_t other = shared;
    s->slope_X = take(memory, &other, 9 * n, real);
    s->slope_v = take(memory, &other, 9 * n, real);
    s->stages.next_X = take(memory, &other, 3 * n, real);
    s->stages.next_v = take(memory, &other, 3 * n, real);
    s->stages.first_X = take(memory, &other, 3 * n, real);
    s->stages.first_v = take(memory, &other, 3 * n, real);
    if (other > *used) *used = other;
    s->runs = take(memory, used, rows * runs, sizeof *s->runs);
    s->rows = take(memory, used, rows, sizeof *s->rows);
    s->planes = take(memory, used, (size_t)nodes[2], sizeof *s->planes);
}

tb_status tb_gpu_soft_upload(tb_gpu_soft_world *c, const void *to, const void *from, size_t bytes,
                             tb_error *error)
{
    if (bytes == 0) return TB_OK;
    return tb_gpu_check(&c->device,
                        cudaMemcpyAsync((void *)(uintptr_t)to, from, bytes, cudaMemcpyHostToDevice,
                                        c->device.stream),
                        "bringing soft bodies", error);
}

tb_status tb_gpu_soft_download(tb_gpu_soft_world *c, void *to, const void *from, size_t bytes,
                               tb_error *error)
{
    if (bytes == 0) return TB_OK;
    return tb_gpu_check(&c->device,
                        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, c->device.stream),
                        "fetching soft bodies", error);
}

/* ---- opening ---- */

/* Planes of the hulls among the obstacles. */
static tb_status bring_hulls(tb_gpu_soft_world *c, const tb_soft_card_scene *scene, char *memory,
                             size_t *used, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < scene->obstacles && status == TB_OK; i++) {
        const tb_soft_solid *o = scene->obstacle + i;
        c->planes[i] = NULL;
        if (o->kind != TB_SOFT_HULL) continue;
        const size_t numbers = 4 * (size_t)o->number_of_planes;
        c->planes[i] = take(memory, used, numbers, sizeof(double));
        if (memory != NULL)
            status =
                tb_gpu_soft_upload(c, c->planes[i], o->planes, numbers * sizeof(double), error);
    }
    return status;
}

/* Arrays of the scene in the card's memory, and what they hold. */
static tb_status bring_scene(tb_gpu_soft_world *c, const tb_soft_card_scene *scene, tb_error *error)
{
    const size_t bodies = (size_t)scene->bodies;
    tb_soft_card_body *body = malloc(bodies * sizeof *body);
    tb_gpu_soft_scratch *scratch = malloc(bodies * sizeof *scratch);
    tb_status status = TB_OK;
    if (body == NULL || scratch == NULL)
        status = tb_fail_memory(error, bodies * sizeof *scratch, "soft bodies on a GPU");
    for (char *memory = NULL; status == TB_OK;) { /* once for the size, once for the places */
        size_t used = 0;
        tb_gpu_soft *g = &c->g;
        g->body = take(memory, &used, bodies, sizeof *g->body);
        g->clamp = take(memory, &used, (size_t)scene->clamps, sizeof *g->clamp);
        g->fields = take(memory, &used, bodies, sizeof *g->fields);
        g->scratch = take(memory, &used, bodies, sizeof *g->scratch);
        g->outcomes = take(memory, &used, bodies, sizeof *g->outcomes);
        g->frames = take(memory, &used, (size_t)scene->clamps, sizeof *g->frames);
        g->impulses = take(memory, &used, 6 * (size_t)scene->clamps, sizeof *g->impulses);
        g->contacts.obstacle =
            take(memory, &used, (size_t)scene->obstacles, sizeof *g->contacts.obstacle);
        g->contacts.pair = take(memory, &used, bodies * (bodies + (size_t)scene->obstacles),
                                sizeof *g->contacts.pair);
        g->contacts.count = take(memory, &used, 1, sizeof *g->contacts.count);
        status = bring_hulls(c, scene, memory, &used, error);
        for (int32_t b = 0; b < scene->bodies; b++) {
            const size_t samples = samples_of(&scene->body[b].shape);
            lay_out_body(scene, b, memory, &used, c->fields + b, scratch + b);
            body[b] = scene->body[b];
            if (samples == 0) continue;
            body[b].shape.samples.distance = take(memory, &used, samples, sizeof(double));
            if (memory != NULL)
                status = tb_gpu_soft_upload(c, body[b].shape.samples.distance,
                                            scene->body[b].shape.samples.distance,
                                            samples * sizeof(double), error);
        }
        if (memory != NULL) break;
        status = tb_gpu_reserve(&c->device, &c->memory, used, error);
        memory = c->memory.memory;
        /* values that no pass has written are read nowhere; layers and masses say so */
        if (status == TB_OK)
            status = tb_gpu_check(&c->device,
                                  cudaMemsetAsync(memory, 0, c->memory.capacity, c->device.stream),
                                  "clearing soft bodies", error);
    }
    if (status == TB_OK)
        status = tb_gpu_soft_upload(c, c->g.body, body, bodies * sizeof *body, error);
    if (status == TB_OK)
        status = tb_gpu_soft_upload(c, c->g.clamp, scene->clamp,
                                    (size_t)scene->clamps * sizeof *scene->clamp, error);
    if (status == TB_OK)
        status = tb_gpu_soft_upload(c, c->g.scratch, scratch, bodies * sizeof *scratch, error);
    if (status == TB_OK) status = tb_gpu_wait(&c->device, "bringing soft bodies", error);
    free(body);
    free(scratch);
    return status;
}

tb_status tb_gpu_soft_open(int32_t device, const tb_soft_card_scene *scene, void **context,
                           tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = tb_gpu_count(reason);
    *context = NULL;
    if (device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             (int)device, (int)devices);
    tb_gpu_soft_world *c = calloc(1, sizeof *c);
    if (c == NULL) return tb_fail_memory(error, sizeof *c, "soft bodies on a GPU");
    tb_status status = tb_gpu_device_open(device, &c->device, error);
    if (status != TB_OK) {
        free(c);
        return status;
    }
    c->device.soft = true;
    tb_gpu_count_soft(device, 0, 1);
    c->nodes = scene->nodes;
    c->g.space = scene->space;
    c->g.bodies = scene->bodies;
    c->g.clamps = scene->clamps;
    c->g.contacts.obstacles = scene->obstacles;
    c->g.nodes = scene->nodes;
    c->g.runs = (scene->space.lattice.nodes[0] + TB_SOFT_RUN - 1) / TB_SOFT_RUN;
    c->outcomes = calloc((size_t)scene->bodies, sizeof *c->outcomes);
    c->fields = calloc((size_t)scene->bodies, sizeof *c->fields);
    c->kept_outcomes = calloc((size_t)scene->bodies, sizeof *c->kept_outcomes);
    c->planes = calloc((size_t)scene->obstacles + 1, sizeof *c->planes);
    if (c->outcomes == NULL || c->fields == NULL || c->kept_outcomes == NULL || c->planes == NULL)
        status = tb_fail_memory(error, (size_t)scene->bodies * sizeof *c->fields,
                                "soft bodies on a GPU");
    if (status == TB_OK)
        status = tb_gpu_check(
            &c->device,
            cudaDeviceGetAttribute(&c->processors, cudaDevAttrMultiProcessorCount, device),
            "asking for its processors", error);
    if (status == TB_OK) status = bring_scene(c, scene, error);
    if (status == TB_OK)
        *context = c;
    else
        tb_gpu_soft_close(c);
    return status;
}

void tb_gpu_soft_close(void *context)
{
    tb_gpu_soft_world *c = context;
    if (c == NULL) return;
    tb_gpu_release(&c->device, &c->memory);
    tb_gpu_release(&c->device, &c->kept);
    tb_gpu_release(&c->device, &c->found);
    tb_gpu_release(&c->device, &c->push);
    tb_gpu_release(&c->device, &c->swept);
    tb_gpu_release(&c->device, &c->rows);
    tb_gpu_release(&c->device, &c->which);
    for (int i = 0; i < 2; i++) {
        tb_gpu_release(&c->device, &c->band[i]);
        tb_gpu_release(&c->device, &c->contacts[i]);
    }
    tb_gpu_release(&c->device, &c->projections);
    tb_gpu_release(&c->device, &c->partners);
    tb_gpu_release_pinned(&c->device, &c->answers);
    tb_gpu_release_pinned(&c->device, &c->counted);
    tb_gpu_release_pinned(&c->device, &c->seen);
    tb_gpu_release_pinned(&c->device, &c->pushed);
    tb_gpu_count_soft(c->device.index, 0, -1);
    tb_gpu_device_close(&c->device);
    free(c->outcomes);
    free(c->kept_outcomes);
    free(c->fields);
    free((void *)(uintptr_t)c->planes);
    free(c);
}

/* ---- copies ---- */

/* The nodes of the planes of a box, which lie in one piece. */
static void planes_of(const tb_gpu_soft_world *c, const int32_t lower[3], const int32_t upper[3],
                      size_t *first, size_t *count)
{
    const size_t plane = (size_t)c->g.space.stride[2];
    *first = plane * (size_t)lower[2];
    *count = upper[2] > lower[2] ? plane * (size_t)(upper[2] - lower[2]) : 0;
}

/* An array of the host and its counterpart on the card. */
typedef struct two_copies {
    void *here;
    const void *there;
    size_t size;  /* of a node's part */
    bool whole;   /* all nodes are copied, else those of the planes */
    bool cleared; /* in front of a copy of the planes: nodes outside of the box have none */
} two_copies;

enum { ARRAYS = 7 };

static void list_arrays(const tb_soft_field *here, const tb_soft_field *there,
                        two_copies list[ARRAYS])
{
    const size_t real = sizeof(double);
    const two_copies all[ARRAYS] = {{here->X, there->X, 3 * real, false, false},
                                    {here->v, there->v, 3 * real, false, false},
                                    {here->mass, there->mass, real, false, true},
                                    {here->depth, there->depth, real, false, false},
                                    {here->layer, there->layer, 1, true, false},
                                    {here->held, there->held, 1, true, false},
                                    {here->octant, there->octant, 8 * real, false, true}};
    memcpy(list, all, sizeof all);
}

/* All nodes: a saved state also has the values of nodes in a box that are not valid. */
static tb_status bring(tb_gpu_soft_world *c, const tb_soft_field *fields, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t b = 0; b < c->g.bodies && status == TB_OK; b++) {
        const tb_soft_field *f = fields + b;
        two_copies list[ARRAYS];
        memcpy(c->fields[b].lower, f->lower, sizeof f->lower);
        memcpy(c->fields[b].upper, f->upper, sizeof f->upper);
        c->fields[b].outside = f->outside;
        c->fields[b].stiffness = f->stiffness;
        list_arrays(f, c->fields + b, list);
        for (int i = 0; i < ARRAYS && status == TB_OK; i++)
            if (list[i].there != NULL)
                status = tb_gpu_soft_upload(c, list[i].there, list[i].here, c->nodes * list[i].size,
                                            error);
    }
    if (status == TB_OK)
        status = tb_gpu_soft_upload(c, c->g.fields, c->fields,
                                    (size_t)c->g.bodies * sizeof *c->fields, error);
    return status;
}

/* Fields with their boxes to the host. */
static tb_status fetch(tb_gpu_soft_world *c, tb_soft_field *fields, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t b = 0; b < c->g.bodies && status == TB_OK; b++) {
        const tb_soft_card_outcome *o = c->outcomes + b;
        tb_soft_field *f = fields + b;
        two_copies list[ARRAYS];
        size_t first, count;
        memcpy(f->lower, o->lower, sizeof f->lower);
        memcpy(f->upper, o->upper, sizeof f->upper);
        f->outside = o->outside;
        planes_of(c, f->lower, f->upper, &first, &count);
        list_arrays(f, c->fields + b, list);
        for (int i = 0; i < ARRAYS && status == TB_OK; i++) {
            const two_copies *x = list + i;
            const size_t from = x->whole ? 0 : first, nodes = x->whole ? c->nodes : count;
            if (x->there == NULL) continue;
            status = tb_gpu_soft_download(c, (char *)x->here + from * x->size,
                                          (const char *)x->there + from * x->size, nodes * x->size,
                                          error);
        }
    }
    return status == TB_OK ? tb_gpu_wait(&c->device, "fetching soft bodies", error) : status;
}

/* ---- the copy on the card ---- */

/* Copies fields within their boxes, to the copy or back. */
static tb_status copy_fields(tb_gpu_soft_world *c, bool back, tb_error *error)
{
    const tb_soft_card_outcome *boxes = back ? c->kept_outcomes : c->outcomes;
    cudaError_t result = cudaSuccess;
    size_t used = 0;
    for (int32_t b = 0; b < c->g.bodies; b++) {
        tb_soft_field copy = {0};
        two_copies list[ARRAYS];
        size_t first, count;
        lay_out_field(c->nodes, c->fields[b].held != NULL, c->kept.memory, &used, &copy);
        planes_of(c, boxes[b].lower, boxes[b].upper, &first, &count);
        list_arrays(&copy, c->fields + b, list);
        for (int i = 0; i < ARRAYS && result == cudaSuccess; i++) {
            const two_copies *x = list + i;
            const size_t from = x->whole ? 0 : first, nodes = x->whole ? c->nodes : count;
            char *kept = (char *)x->here + from * x->size;
            char *own = (char *)(uintptr_t)x->there + from * x->size;
            if (x->there == NULL || nodes == 0) continue;
            if (back && x->cleared)
                result = cudaMemsetAsync((void *)(uintptr_t)x->there, 0, c->nodes * x->size,
                                         c->device.stream);
            if (result == cudaSuccess)
                result = cudaMemcpyAsync(back ? own : kept, back ? kept : own, nodes * x->size,
                                         cudaMemcpyDeviceToDevice, c->device.stream);
        }
    }
    return tb_gpu_check(&c->device, result, back ? "undoing a step" : "keeping soft bodies", error);
}

static tb_status keep(tb_gpu_soft_world *c, tb_error *error)
{
    size_t used = 0;
    tb_soft_field ignored;
    for (int32_t b = 0; b < c->g.bodies; b++)
        lay_out_field(c->nodes, c->fields[b].held != NULL, NULL, &used, &ignored);
    const tb_status status = tb_gpu_reserve(&c->device, &c->kept, used, error);
    if (status != TB_OK) return status;
    memcpy(c->kept_outcomes, c->outcomes, (size_t)c->g.bodies * sizeof *c->outcomes);
    return copy_fields(c, false, error);
}

/* The kept fields, with their boxes. */
static tb_status undo(tb_gpu_soft_world *c, tb_error *error)
{
    for (int32_t b = 0; b < c->g.bodies; b++) {
        const tb_soft_card_outcome *o = c->kept_outcomes + b;
        memcpy(c->fields[b].lower, o->lower, sizeof o->lower);
        memcpy(c->fields[b].upper, o->upper, sizeof o->upper);
        c->fields[b].outside = o->outside;
    }
    const tb_status status = copy_fields(c, true, error);
    if (status != TB_OK) return status;
    return tb_gpu_soft_upload(c, c->g.fields, c->fields, (size_t)c->g.bodies * sizeof *c->fields,
                              error);
}

/* ---- calls ---- */

static tb_status compute(tb_gpu_soft_world *c, const tb_soft_card_call *call, tb_error *error)
{
    cudaError_t result = cudaSuccess;
    tb_gpu_soft g = c->g;
    const size_t clamps = (size_t)g.clamps;
    g.dt = call->dt;
    g.followers = call->followers;
    tb_status status =
        tb_gpu_soft_upload(c, g.frames, call->frames, clamps * sizeof *g.frames, error);
    if (status != TB_OK) return status;
    switch (call->part) {
    case TB_SOFT_CARD_FORCES:
        result = tb_gpu_soft_forces(&g, c->processors, c->device.stream);
        break;
    case TB_SOFT_CARD_TRANSPORT:
        result = tb_gpu_soft_transport(&g, c->processors, c->device.stream);
        break;
    default: result = tb_gpu_soft_measure(&g, c->processors, c->device.stream);
    }
    status = tb_gpu_check(&c->device, result, "moving soft bodies", error);
    if (status == TB_OK && call->followers != 0)
        status = tb_gpu_soft_download(c, call->impulses, g.impulses,
                                      6 * clamps * sizeof *g.impulses, error);
    if (status == TB_OK)
        status = tb_gpu_soft_download(c, c->outcomes, c->g.outcomes,
                                      (size_t)c->g.bodies * sizeof *c->outcomes, error);
    if (status == TB_OK) status = tb_gpu_wait(&c->device, "moving soft bodies", error);
    if (status == TB_OK)
        memcpy(call->outcomes, c->outcomes, (size_t)c->g.bodies * sizeof *c->outcomes);
    return status;
}

/* Outcomes of the fields that come, as far as they are known before anything is computed. */
static tb_status begin_outcomes(tb_gpu_soft_world *c, tb_error *error)
{
    for (int32_t b = 0; b < c->g.bodies; b++) {
        tb_soft_card_outcome *o = c->outcomes + b;
        memset(o, 0, sizeof *o);
        memcpy(o->lower, c->fields[b].lower, sizeof o->lower);
        memcpy(o->upper, c->fields[b].upper, sizeof o->upper);
        o->outside = c->fields[b].outside;
    }
    return tb_gpu_soft_upload(c, c->g.outcomes, c->outcomes,
                              (size_t)c->g.bodies * sizeof *c->outcomes, error);
}

tb_status tb_gpu_soft_call(void *context, const tb_soft_card_call *call, tb_error *error)
{
    tb_gpu_soft_world *c = context;
    tb_status status = tb_gpu_device_enter(&c->device, error);
    if (status != TB_OK) return status;
    switch (call->part) {
    case TB_SOFT_CARD_FETCH: return fetch(c, call->fields, error);
    case TB_SOFT_CARD_SEARCH: return tb_gpu_soft_find(c, call->search, error);
    case TB_SOFT_CARD_HESSIAN: return tb_gpu_soft_make_hessian(c, call->hessian, error);
    case TB_SOFT_CARD_SWEEP: return tb_gpu_soft_sweep(c, call->sweeps, error);
    case TB_SOFT_CARD_CONTACT: return tb_gpu_soft_solve(c, call->contacts, error);
    case TB_SOFT_CARD_RECALL: return tb_gpu_soft_recall(c, call->recalled, error);
    case TB_SOFT_CARD_PUSH: return tb_gpu_soft_push(c, call->push, call->pushes, error);
    case TB_SOFT_CARD_KEEP: return keep(c, error);
    case TB_SOFT_CARD_UNDO:
        status = undo(c, error);
        if (status == TB_OK) status = begin_outcomes(c, error);
        break;
    case TB_SOFT_CARD_BRING:
        status = bring(c, call->fields, error);
        if (status == TB_OK) status = begin_outcomes(c, error);
        break;
    default: break;
    }
    return status == TB_OK ? compute(c, call, error) : status;
}
