/* States as bytes, worlds from texts.
 *
 * A state holds time, the fields in each body's box and the contacts of the last substep. Values outside of
 * the boxes are never read. Bytes begin with a name, a hash of the state's meaning (the scene
 * without its options) and a hash of all that follows. */
#include <stdlib.h>
#include <string.h>

#include "grid/card/steps.h"
#include "grid/grid_internal.h"

enum { HASH = 65, MAGIC = 8 };
static const char NAME[MAGIC] = "TBSOFT3";

/* Numbers that a state depends on: grid, bodies, walls and clamps. Options may differ. */
static tb_status hash_scene(const tb_soft_world *w, char hex[HASH])
{
    const tb_soft_scene *s = &w->scene;
    tb_bytes b = {0};
    tb_status status = tb_bytes_append(&b, &s->lattice, sizeof s->lattice);
    for (int32_t i = 0; status == TB_OK && i < s->number_of_bodies; i++) {
        const tb_soft_body *body = s->bodies + i;
        const tb_soft_material *m = &body->material;
        const double numbers[] = {
            (double)body->shape.kind, (double)m->law, m->density, m->young, m->poisson, m->damping};
        status = tb_bytes_append(&b, numbers, sizeof numbers);
        if (status == TB_OK)
            status = tb_bytes_append(&b, body->shape.size, sizeof body->shape.size);
        if (status == TB_OK)
            status = tb_bytes_append(&b, &body->shape.pose, sizeof body->shape.pose);
        if (status == TB_OK && body->shape.kind == TB_SOFT_MESH)
            status =
                tb_bytes_append(&b, tb_soft_mesh_digest(s->meshes[body->mesh]), TB_SOFT_DIGEST - 1);
    }
    for (int32_t i = 0; status == TB_OK && i < s->number_of_obstacles; i++) {
        const tb_soft_obstacle *o = s->obstacles + i;
        const double kind = (double)o->shape.kind;
        status = tb_bytes_append(&b, &kind, sizeof kind);
        if (status == TB_OK) status = tb_bytes_append(&b, o->shape.size, sizeof o->shape.size);
        if (status == TB_OK) status = tb_bytes_append(&b, &o->shape.pose, sizeof o->shape.pose);
        if (status == TB_OK) status = tb_bytes_append(&b, o->velocity, sizeof o->velocity);
    }
    for (int32_t i = 0; status == TB_OK && i < s->number_of_clamps; i++) {
        const tb_soft_clamp *c = s->clamps + i;
        const double numbers[] = {c->body,        c->lower[0],    c->lower[1], c->lower[2],
                                  c->upper[0],    c->upper[1],    c->upper[2], c->velocity[0],
                                  c->velocity[1], c->velocity[2], c->rigid};
        status = tb_bytes_append(&b, numbers, sizeof numbers);
    }
    if (status == TB_OK) tb_sha256_hex(b.base, b.size, hex);
    tb_bytes_free(&b);
    return status;
}

/* Bytes on their way to a state (bytes != NULL) or from one. */
typedef struct stream {
    tb_bytes *bytes;
    const unsigned char *from;
    size_t left;
    bool good;
} stream;

static void pass(stream *s, void *data, size_t size)
{
    if (!s->good) return;
    if (s->bytes != NULL) {
        s->good = tb_bytes_append(s->bytes, data, size) == TB_OK;
        return;
    }
    s->good = size <= s->left;
    if (!s->good) return;
    memcpy(data, s->from, size);
    s->from += size;
    s->left -= size;
}

/* One body's box, and the numbers in it if they are the host's. */
static void pass_field(tb_soft_world *w, tb_soft_field *f, bool numbers, stream *s)
{
    pass(s, f->lower, sizeof f->lower);
    pass(s, f->upper, sizeof f->upper);
    pass(s, &f->outside, sizeof f->outside);
    pass(s, &f->stiffness, sizeof f->stiffness);
    for (int a = 0; a < 3; a++)
        s->good = s->good && f->lower[a] >= 0 && f->lower[a] <= f->upper[a] &&
                  f->upper[a] <= w->scene.lattice.nodes[a];
    if (!s->good || !numbers) return;
    const size_t width = (size_t)(f->upper[0] - f->lower[0]);
    for (int32_t k = f->lower[2]; k < f->upper[2]; k++)
        for (int32_t j = f->lower[1]; j < f->upper[1]; j++) {
            const size_t n = (size_t)tb_soft_node(w, f->lower[0], j, k);
            pass(s, f->X + 3 * n, 3 * width * sizeof(double));
            pass(s, f->v + 3 * n, 3 * width * sizeof(double));
            pass(s, f->mass + n, width * sizeof(double));
            pass(s, f->depth + n, width * sizeof(double));
            pass(s, f->octant + 8 * n, 8 * width * sizeof(double));
            pass(s, f->layer + n, width);
        }
}

/* `numbers`: with the numbers of fields, else with their boxes alone. */
static tb_status pass_parts(tb_soft_world *w, bool numbers, stream *s, tb_error *error)
{
    int32_t count = w->number_of_contacts;
    pass(s, &w->time, sizeof w->time);
    pass(s, &w->last_dt, sizeof w->last_dt);
    pass(s, &w->last_part, sizeof w->last_part);
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++)
        pass_field(w, w->fields + b, numbers, s);
    for (int32_t r = 0; r < w->number_of_rigid; r++)
        pass(s, w->rigid[r].before, sizeof w->rigid[r].before);
    pass(s, &count, sizeof count);
    if (s->bytes == NULL && s->good) {
        w->number_of_contacts = 0;
        tb_arena_reset(&w->history);
        s->good = count >= 0 && (size_t)count <= s->left / sizeof *w->contacts;
        w->contacts = TB_ARENA_ARRAY(&w->history, tb_soft_contact, s->good ? count : 0);
        if (w->contacts == NULL) return tb_fail_memory(error, 0, "contacts of a state");
        w->number_of_contacts = s->good ? count : 0;
    }
    for (int32_t i = 0; i < w->number_of_contacts; i++)
        pass(s, w->contacts + i, sizeof *w->contacts);
    return TB_OK;
}

static tb_status pass_world(tb_soft_world *w, stream *s, tb_error *error)
{
    const tb_status status = s->bytes != NULL ? tb_soft_card_fetch(w, error) : TB_OK;
    if (status != TB_OK) return status;
    if (s->bytes == NULL) tb_soft_card_forget(w);
    return pass_parts(w, true, s, error);
}

tb_status tb_soft_world_save(const tb_soft_world *world, unsigned char **bytes, size_t *size,
                             tb_error *error)
{
    char scene[HASH], content[HASH];
    tb_bytes body = {0}, all = {0};
    stream s = {.bytes = &body, .good = true};
    *bytes = NULL;
    *size = 0;
    if (world->failed)
        return tb_fail(error, TB_FAILED_PRECONDITION, "the world failed inside of a step");
    /* writing reads the world alone */
    tb_status status = pass_world((tb_soft_world *)(uintptr_t)world, &s, error);
    if (status == TB_OK && !s.good) status = TB_RESOURCE_EXHAUSTED;
    if (status == TB_OK) status = hash_scene(world, scene);
    if (status == TB_OK) {
        tb_sha256_hex(body.base, body.size, content);
        status = tb_bytes_append(&all, NAME, MAGIC);
    }
    if (status == TB_OK) status = tb_bytes_append(&all, scene, HASH);
    if (status == TB_OK) status = tb_bytes_append(&all, content, HASH);
    if (status == TB_OK) status = tb_bytes_append(&all, body.base, body.size);
    tb_bytes_free(&body);
    if (status != TB_OK) {
        tb_bytes_free(&all);
        return tb_fail_memory(error, 0, "a state of soft bodies");
    }
    *bytes = all.base;
    *size = all.size;
    return TB_OK;
}

/* Clears the data that a state does not hold. */
static void clear(tb_soft_world *w)
{
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        tb_soft_field *f = w->fields + b;
        memset(f->layer, TB_SOFT_NO_LAYER, w->nodes);
        memset(f->mass, 0, w->nodes * sizeof *f->mass);
        memset(f->octant, 0, 8 * w->nodes * sizeof *f->octant);
    }
}

tb_status tb_soft_world_restore(tb_soft_world *w, const unsigned char *bytes, size_t size,
                                tb_error *error)
{
    char scene[HASH], content[HASH];
    const size_t head = MAGIC + 2 * HASH;
    if (size < head || memcmp(bytes, NAME, MAGIC) != 0)
        return tb_fail(error, TB_DATA_LOSS, "these bytes are no state of soft bodies");
    tb_sha256_hex(bytes + head, size - head, content);
    if (memcmp(bytes + MAGIC + HASH, content, HASH) != 0)
        return tb_fail(error, TB_DATA_LOSS, "a state of soft bodies is damaged");
    if (hash_scene(w, scene) != TB_OK) return tb_fail_memory(error, 0, "a scene's hash");
    if (memcmp(bytes + MAGIC, scene, HASH) != 0)
        return tb_fail(error, TB_FAILED_PRECONDITION, "the state belongs to another scene");
    /* the content comes from a world of this scene */
    stream s = {.from = bytes + head, .left = size - head, .good = true};
    clear(w);
    w->failed = true;
    const tb_status status = pass_world(w, &s, error);
    if (status != TB_OK) return status;
    if (!s.good || s.left != 0)
        return tb_fail(error, TB_DATA_LOSS, "a state of soft bodies has the wrong size");
    w->failed = false;
    return TB_OK;
}

/* ---- the way back from a step that fails ---- */

tb_status tb_soft_world_keep(const tb_soft_world *w, tb_bytes *bytes, tb_error *error)
{
    stream s = {.bytes = bytes, .good = true};
    bytes->size = 0;
    if (w->failed)
        return tb_fail(error, TB_FAILED_PRECONDITION, "the world failed inside of a step");
    /* writing reads the world alone */
    const tb_status status = pass_world((tb_soft_world *)(uintptr_t)w, &s, error);
    if (status != TB_OK || s.good) return status;
    return tb_fail_memory(error, bytes->size, "soft bodies before a step");
}

tb_status tb_soft_world_put_back(tb_soft_world *w, const tb_bytes *bytes, tb_error *error)
{
    stream s = {.from = bytes->base, .left = bytes->size, .good = true};
    clear(w);
    const tb_status status = pass_world(w, &s, error);
    w->failed = status != TB_OK;
    return status;
}

tb_status tb_soft_world_begin_step(tb_soft_world *w, tb_bytes *bytes, tb_error *error)
{
    stream s = {.bytes = bytes, .good = true};
    w->momenta_known = false;
    if (w->card == NULL) return tb_soft_world_keep(w, bytes, error);
    bytes->size = 0;
    if (w->failed)
        return tb_fail(error, TB_FAILED_PRECONDITION, "the world failed inside of a step");
    tb_status status = tb_soft_card_keep(w, error);
    if (status == TB_OK) status = pass_parts(w, false, &s, error);
    if (status != TB_OK || s.good) return status;
    return tb_fail_memory(error, bytes->size, "soft bodies before a step");
}

tb_status tb_soft_world_undo_step(tb_soft_world *w, const tb_bytes *bytes, tb_error *error)
{
    stream s = {.from = bytes->base, .left = bytes->size, .good = true};
    if (w->card == NULL) return tb_soft_world_put_back(w, bytes, error);
    tb_status status = pass_parts(w, false, &s, error);
    if (status == TB_OK) status = tb_soft_card_undo(w, error);
    w->failed = status != TB_OK;
    return status;
}

/* ---- worlds from texts ---- */

tb_status tb_soft_world_load(const char *text, size_t size, const char *name,
                             const tb_soft_load_options *options, tb_soft_world **world,
                             tb_error *error)
{
    tb_soft_scene *scene = malloc(sizeof *scene);
    *world = NULL;
    if (scene == NULL) return tb_fail_memory(error, sizeof *scene, "a scene");
    tb_status status = tb_soft_scene_read(text, size, name, scene, error);
    if (status == TB_OK && options != NULL) {
        scene->options.threads = options->threads;
        if (options->dt > 0) scene->options.dt = options->dt;
        if (options->choose_contact) scene->options.contact = options->contact;
        scene->options.backend = scene->options.programs = options->backend;
        scene->options.first_sets = options->first_sets;
    }
    if (status == TB_OK) status = tb_soft_world_create(scene, world, error);
    tb_soft_scene_clear(scene);
    free(scene);
    return status;
}

void tb_soft_world_info(const tb_soft_world *w, tb_soft_info *info)
{
    *info = (tb_soft_info){.name = w->scene.name,
                           .dt = w->scene.options.dt,
                           .bodies = w->scene.number_of_bodies,
                           .walls = w->scene.number_of_obstacles};
    memcpy(info->nodes, w->scene.lattice.nodes, sizeof info->nodes);
}
