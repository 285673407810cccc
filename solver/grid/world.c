/* Worlds of soft bodies: memory, and the fields at the start. */
#include <stdlib.h>
#include <string.h>

#include "grid/card/steps.h"
#include "grid/grid_internal.h"

/* Of a mesh's volume: cells that differ by more see too little of the mesh to touch anything. */
static const double LARGEST_MASS_ERROR = 0.2;

/* malloc'ed and zeroed; *status is RESOURCE_EXHAUSTED if memory is refused */
static void *take(size_t count, size_t size, tb_status *status, tb_error *error)
{
    if (*status != TB_OK) return NULL;
    void *memory = calloc(count, size);
    if (memory == NULL) *status = tb_fail_memory(error, count * size, "the grid's nodes");
    return memory;
}

static tb_status allocate(tb_soft_world *w, tb_error *error)
{
    tb_status status = TB_OK;
    const size_t n = w->nodes;
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        tb_soft_field *f = w->fields + b;
        f->X = take(3 * n, sizeof(double), &status, error);
        f->v = take(3 * n, sizeof(double), &status, error);
        f->mass = take(n, sizeof(double), &status, error);
        f->depth = take(n, sizeof(double), &status, error);
        f->octant = take(8 * n, sizeof(double), &status, error);
        f->layer = take(n, 1, &status, error);
    }
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
        tb_soft_field *f = w->fields + w->scene.clamps[c].body;
        if (f->held == NULL) f->held = take(n, 1, &status, error);
    }
    w->cell_force = take(24 * n, sizeof(double), &status, error);
    w->slope = take(9 * n, sizeof(double), &status, error);
    w->neighbours = take(n, sizeof *w->neighbours, &status, error);
    w->cell_mass = take(n, sizeof(double), &status, error);
    w->stages.next_X = take(3 * n, sizeof(double), &status, error);
    w->stages.next_v = take(3 * n, sizeof(double), &status, error);
    w->stages.first_X = take(3 * n, sizeof(double), &status, error);
    w->stages.first_v = take(3 * n, sizeof(double), &status, error);
    w->planes = take((size_t)w->scene.lattice.nodes[2], sizeof *w->planes, &status, error);
    w->now = take((size_t)w->scene.number_of_obstacles + 1, sizeof *w->now, &status, error);
    return status;
}

/* X = x and the rigid velocity at every node, clamps. */
static void start_plane(tb_soft_world *w, int32_t body, int32_t k, const void *context)
{
    tb_soft_field *f = w->fields + body;
    const tb_soft_body *b = w->scene.bodies + body;
    double p[3];
    tb_v3_store(p, b->shape.pose.position);
    (void)context;
    TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
        const double x[3] = {tb_soft_coordinate(w, 0, i), tb_soft_coordinate(w, 1, j),
                             tb_soft_coordinate(w, 2, k)};
        double *X = f->X + 3 * (size_t)n, *v = f->v + 3 * (size_t)n;
        for (int a = 0; a < 3; a++) {
            const int d = (a + 1) % 3, e = (a + 2) % 3;
            X[a] = x[a];
            v[a] = b->velocity[a] + b->angular[d] * (x[e] - p[e]) - b->angular[e] * (x[d] - p[d]);
        }
        for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
            const tb_soft_clamp *clamp = w->scene.clamps + c;
            if (clamp->body != body || !tb_soft_box_holds(&w->space, clamp->lower, clamp->upper, x))
                continue;
            f->held[n] = (uint8_t)(c + 1);
            memcpy(v, clamp->velocity, 3 * sizeof *v);
        }
    }
}

/* Distances of the meshes that bodies have, finer than the grid: fields then borrow them. */
static tb_status measure_meshes(tb_soft_world *w, tb_error *error)
{
    /* per octant, whose faces the distance cuts */
    const double PER_OCTANT = 2;
    const double *h = w->scene.lattice.spacing;
    const double least = tb_min(h[0], tb_min(h[1], h[2])), most = tb_max(h[0], tb_max(h[1], h[2]));
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        tb_soft_body *body = w->scene.bodies + b;
        if (body->shape.kind != TB_SOFT_MESH) continue;
        tb_soft_mesh *mesh = w->scene.meshes[body->mesh];
        const tb_status status = tb_soft_mesh_measure(mesh, least / (2 * PER_OCTANT), 2 * most,
                                                      w->scene.options.threads, error);
        if (status != TB_OK) return status;
        body->shape.samples = *tb_soft_mesh_samples(mesh);
    }
    return TB_OK;
}

static tb_status start(tb_soft_world *w, int32_t body, tb_error *error)
{
    tb_soft_field *f = w->fields + body;
    double mass_error;
    memcpy(f->upper, w->scene.lattice.nodes, sizeof f->upper);
    tb_soft_planes(w, body, start_plane, NULL);
    tb_soft_measure_masses(w, body, &mass_error);
    if (!(tb_soft_momentum_pass(w, body).mass > 0))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "size",
                             "body '%s' is too small for the grid: no node has mass",
                             w->scene.bodies[body].name);
    if (w->scene.bodies[body].shape.kind == TB_SOFT_MESH && mass_error > LARGEST_MASS_ERROR)
        return tb_fail_field(
            error, TB_INVALID_ARGUMENT, "mesh",
            "body '%s' is too thin for the grid: the cells that it occupies differ "
            "by %.0f %% from its mesh's volume",
            w->scene.bodies[body].name, 100 * mass_error);
    tb_soft_extrapolate(w, body, f->v);
    f->stiffness = tb_soft_stress_pass(w, body).stiffness;
    return TB_OK;
}

tb_status tb_soft_world_create(const tb_soft_scene *scene, tb_soft_world **world, tb_error *error)
{
    tb_soft_world *w = calloc(1, sizeof *w);
    *world = NULL;
    if (w == NULL) return tb_fail_memory(error, sizeof *w, "a world");
    w->scene = *scene;
    for (int32_t i = 0; i < scene->number_of_meshes; i++) tb_soft_mesh_retain(scene->meshes[i]);
    tb_status status = tb_soft_scene_check(&w->scene, error);
    if (status == TB_OK) {
        const int32_t *n = w->scene.lattice.nodes;
        w->nodes = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
        w->space = (tb_soft_space){.lattice = w->scene.lattice,
                                   .stride = {1, n[0], (int64_t)n[0] * n[1]},
                                   .advection = w->scene.options.advection};
        memcpy(w->space.gravity, w->scene.gravity, sizeof w->space.gravity);
        tb_soft_tables_fill(&w->space.tables, w->scene.lattice.spacing);
        status = allocate(w, error);
    }
    if (status == TB_OK) status = measure_meshes(w, error);
    for (int32_t b = 0; status == TB_OK && b < w->scene.number_of_bodies; b++)
        status = start(w, b, error);
    if (status == TB_OK) status = tb_soft_card_open(w, error);
    if (status == TB_OK)
        *world = w;
    else
        tb_soft_world_destroy(w);
    return status;
}

tb_status tb_soft_world_place(tb_soft_world *w, tb_backend_choice backend, int32_t device,
                              tb_error *error)
{
    tb_soft_options *o = &w->scene.options;
    if (backend == o->backend && (backend != TB_BACKEND_GPU || device == o->device)) return TB_OK;
    tb_status status = tb_soft_card_fetch(w, error);
    if (status != TB_OK) return status;
    const tb_soft_options old = *o;
    tb_soft_card *card = w->card;
    w->card = NULL;
    o->backend = o->programs = backend;
    o->device = device;
    status = tb_soft_card_open(w, error);
    if (status != TB_OK) {
        tb_soft_card_close(w);
        w->card = card;
        *o = old;
        return status;
    }
    tb_soft_card *opened = w->card;
    w->card = card;
    tb_soft_card_close(w);
    w->card = opened;
    return TB_OK;
}

void tb_soft_world_destroy(tb_soft_world *w)
{
    if (w == NULL) return;
    tb_soft_card_close(w);
    for (int32_t b = 0; b < w->scene.number_of_bodies && b < TB_SOFT_MOST_BODIES; b++) {
        tb_soft_field *f = w->fields + b;
        free(f->X);
        free(f->v);
        free(f->mass);
        free(f->depth);
        free(f->octant);
        free(f->layer);
        free(f->held);
    }
    free(w->cell_force);
    free(w->slope);
    free(w->neighbours);
    free(w->cell_mass);
    free(w->stages.next_X);
    free(w->stages.next_v);
    free(w->stages.first_X);
    free(w->stages.first_v);
    free(w->planes);
    free(w->now);
    free(w->rigid);
    tb_arena_destroy(&w->step);
    tb_arena_destroy(&w->history);
    tb_soft_scene_clear(&w->scene);
    free(w);
}

const tb_soft_scene *tb_soft_world_scene(const tb_soft_world *w)
{
    return &w->scene;
}

const char *tb_soft_world_body_name(const tb_soft_world *w, int32_t body)
{
    return body >= 0 && body < w->scene.number_of_bodies ? w->scene.bodies[body].name : "";
}

void tb_soft_world_choose_contact(tb_soft_world *w, tb_soft_contact_method contact)
{
    w->scene.options.contact = contact;
}

double tb_soft_world_time(const tb_soft_world *w)
{
    return w->time;
}

tb_soft_field *tb_soft_world_field(tb_soft_world *w, int32_t body)
{
    (void)tb_soft_card_fetch(w, NULL); /* a failure fails the next step */
    tb_soft_card_forget(w);            /* the caller may change the field */
    return w->fields + body;
}

const tb_soft_contact *tb_soft_world_contacts(const tb_soft_world *w, int32_t *count)
{
    /* a failure fails the next step */
    (void)tb_soft_card_fetch_contacts((tb_soft_world *)(uintptr_t)w, NULL);
    *count = w->number_of_contacts;
    return w->contacts;
}

void tb_soft_world_measure(tb_soft_world *w, int32_t body, double energy[3], double momentum[3],
                           double centre[3])
{
    const tb_soft_card *card = w->card != NULL && w->card->stale ? w->card : NULL;
    if (card != NULL)
        (void)tb_soft_card_do(w, TB_SOFT_CARD_MEASURE, 0, NULL); /* a failure fails the next step */
    const tb_soft_sums s =
        card != NULL ? card->outcomes[body].momentum : tb_soft_momentum_pass(w, body);
    if (energy != NULL) {
        energy[0] = s.kinetic;
        energy[1] = card != NULL ? card->outcomes[body].stress.elastic
                                 : tb_soft_stress_pass(w, body).elastic;
        energy[2] = s.potential;
    }
    for (int a = 0; a < 3; a++) {
        if (momentum != NULL) momentum[a] = s.momentum[a];
        if (centre != NULL) centre[a] = s.moment[a] / s.mass;
    }
}
