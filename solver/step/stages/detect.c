/* Contacts of one world: boxes that may meet within the step, pairs, contact points, and at once
 * their rows, while the contact's data is in the cache. */
#include "step/stages/detect/detection.h"

TB_STATIC tb_box swept_box(const detection *d, int32_t s, tb_box box)
{
    const tb_world *w = d->world;
    return tb_box_swept(&box, d->velocity[s], d->spin[s], look_ahead(w), least_margin(w));
}

TB_STATIC tb_flight flight_of(const detection *d, int32_t s)
{
    const tb_world *w = d->world;
    const int32_t body = w->model->shapes[s].body;
    tb_flight flight;
    flight.box = tb_shape_box(&d->shapes[s]);
    flight.origin = w->dynamics.poses[body].position;
    flight.velocity = d->velocity[s];
    flight.angular = w->dynamics.velocities[body].angular;
    flight.spin = d->spin[s];
    return flight;
}

/* tb_local_margin of two shapes. */
TB_STATIC tb_real local_margin(const detection *d, int32_t a, int32_t b, tb_real margin)
{
    const tb_world *w = d->world;
    const tb_flight own = flight_of(d, a), other = flight_of(d, b);
    return tb_local_margin(&own, &other, margin, look_ahead(w), least_margin(w));
}

TB_STATIC bool is_surface(const tb_posed_shape *shape)
{
    return shape->type == TB_SHAPE_MESH || shape->type == TB_SHAPE_HEIGHT_FIELD;
}

/* Up to which gap contacts of two shapes are wanted. */
TB_STATIC tb_real pair_margin(const detection *d, int32_t a, int32_t b)
{
    const tb_world *w = d->world;
    const tb_real margin = tb_pair_margin(d->velocity[a], d->spin[a], d->velocity[b], d->spin[b],
                                          look_ahead(w), least_margin(w));
    return is_surface(&d->shapes[a]) && is_surface(&d->shapes[b]) ? local_margin(d, a, b, margin)
                                                                  : margin;
}

/* Arrays of the shapes. False if memory is refused. */
TB_STATIC bool take_shapes(detection *d)
{
    const tb_world *w = d->world;
    const int32_t shapes = w->model->number_of_shapes;
    tb_arena_pieces pieces = tb_arena_begin(w->arena);
    d->shapes = TB_ARENA_PIECE(&pieces, tb_posed_shape, shapes);
    d->velocity = TB_ARENA_PIECE(&pieces, tb_vec3, shapes);
    d->spin = TB_ARENA_PIECE(&pieces, tb_real, shapes);
    d->boxes = TB_ARENA_PIECE(&pieces, tb_box, w->model->number_of_colliding_shapes);
    tb_arena_end(&pieces);
    return d->shapes && d->velocity && d->spin && d->boxes;
}

/* Where all shapes are, and their boxes; on a card without those that are climbed. */
TB_STATIC void place_shapes(detection *d)
{
    const tb_model *m = d->world->model;
    TB_EACH (i, m->number_of_colliding_shapes) {
        const int32_t s = m->colliding_shapes[i];
        const tb_posed_shape *shape = &d->shapes[s];
        const shape_motion own = look_at_shape(d->world, s);
        d->shapes[s] = own.posed;
        d->velocity[s] = own.velocity;
        d->spin[s] = own.spin;
#ifdef TB_DEVICE
        if (tb_shape_is_climbed(shape)) continue;
#endif
        d->boxes[i] = swept_box(
            d, s, d->tight ? tb_shape_loose_box(shape, &d->tight[i]) : tb_shape_box(shape));
    }
    tb_team_sync();
}

#ifdef TB_DEVICE
/* The n-th bit that is set. */
TB_STATIC int32_t place_of_bit(uint32_t bits, int32_t n)
{
    for (; n > 0; n--) bits &= bits - 1;
    return tb_count_bits((bits & (0 - bits)) - 1);
}

/* The boxes of hulls that are climbed, a bound a lane: one lane would climb six times, and the others wait. */
TB_CALLED void place_climbed(const detection *d)
{
    enum { BOUNDS = 6 };
    const tb_model *m = d->world->model;
    const int32_t count = m->number_of_colliding_shapes, *shapes = m->colliding_shapes;
    for (int32_t base = 0; base < count; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        const bool own = i < count && tb_shape_is_climbed(&d->shapes[shapes[i]]);
        const uint32_t climbed = tb_team_ballot(own);
        TB_EACH (k, BOUNDS * tb_count_bits(climbed)) {
            const int32_t at = base + place_of_bit(climbed, k / BOUNDS);
            tb_real *bounds = (tb_real *)&d->boxes[at];
            bounds[k % BOUNDS] = tb_hull_bound(&d->shapes[shapes[at]], k % BOUNDS);
        }
        tb_team_sync();
        if (own) d->boxes[i] = swept_box(d, shapes[i], d->boxes[i]);
    }
    tb_team_sync();
}
#endif

/* Both. False if memory is refused. */
TB_STATIC bool pose_shapes(detection *d)
{
    if (!take_shapes(d)) return false;
    place_shapes(d);
#ifdef TB_DEVICE
    place_climbed(d);
#endif
    return true;
}

#ifndef TB_DEVICE /* there: detect_team.c */

/* The broad phase sees the shapes that can collide at all, by their place in the model's list. */
TB_STATIC bool wanted(const void *context, int32_t a, int32_t b)
{
    const tb_model *m = (const tb_model *)context;
    const int32_t p = m->colliding_shapes[a], q = m->colliding_shapes[b];
    if (m->filters[p].root == m->filters[q].root) return false; /* most near shapes: one body's */
    return tb_model_shapes_collide(m, p, q);
}

/* The same where bodies sleep: a pair of which none moves stays as it is. */
typedef struct sleepy_pairs {
    const tb_model *model;
    bool *moves; /* colliding shapes */
} sleepy_pairs;

TB_STATIC bool wanted_awake(const void *context, int32_t a, int32_t b)
{
    const sleepy_pairs *pairs = (const sleepy_pairs *)context;
    return (pairs->moves[a] || pairs->moves[b]) && wanted(pairs->model, a, b);
}

/* Pairs of boxes that meet, whose shapes may collide. */
TB_STATIC tb_status find_pairs(const detection *d, tb_pair **pairs, int32_t *count)
{
    const tb_world *w = d->world;
    const tb_model *m = w->model;
    const int32_t shapes = m->number_of_colliding_shapes;
    if (!w->sleep || !w->sleep->any)
        return tb_broad_phase(d->boxes, shapes, wanted, m, w->threads, w->arena, pairs, count);
    sleepy_pairs sleepy = {m, TB_ARENA_ARRAY(w->arena, bool, shapes)};
    if (!sleepy.moves) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < shapes; i++)
        sleepy.moves[i] = tb_sleep_moves(w, m->colliding_shapes[i]);
    return tb_broad_phase(d->boxes, shapes, wanted_awake, &sleepy, w->threads, w->arena, pairs,
                          count);
}

/* Contacts come sorted by pair, and those of elements are not merged. */
TB_STATIC bool merges_points(const tb_world *w)
{
    return w->options->contact_merge > 0 && w->model->number_of_elements == 0;
}

/* Keeps a pair's points until those of all pairs are there. */
TB_STATIC tb_status keep_points(const tb_world *w, point_list *list, int32_t a, int32_t b,
                                int32_t count)
{
    if (list->number_found + count > list->found_capacity) {
        const int32_t capacity = 2 * (list->number_found + count);
        tb_merge_point *grown = TB_ARENA_ARRAY(w->arena, tb_merge_point, capacity);
        if (!grown) return TB_RESOURCE_EXHAUSTED;
        if (list->number_found > 0)
            memcpy(grown, list->found, (size_t)list->number_found * sizeof *grown);
        list->found = grown;
        list->found_capacity = capacity;
    }
    for (int32_t i = 0; i < count; i++)
        list->found[list->number_found++] = merge_point_of(w, a, b, &list->points[i]);
    return TB_OK;
}

TB_STATIC tb_status add_contacts(tb_world *w, point_list *list, int32_t a, int32_t b, int32_t count)
{
    if (merges_points(w)) return keep_points(w, list, a, b, count);
    tb_world_contact c = contact_of_pair(w->model, a, b);
    for (int32_t i = 0; i < count; i++) {
        take_point(&c, &list->points[i]);
        if (!tb_contacts_add(w, &c, list->points, count)) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

TB_STATIC tb_status add_merged(tb_world *w, const point_list *list)
{
    if (list->number_found == 0) return TB_OK;
    if (!merge_points(w, list->found, list->number_found)) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < list->number_found; i++) {
        const tb_merge_point *p = &list->found[i];
        if (!p->stays) continue;
        tb_world_contact c = contact_of_pair(w->model, p->shape_a, p->shape_b);
        take_point(&c, &p->point);
        if (!tb_contacts_add(w, &c, NULL, 0)) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

/* Makes a colliding shape's box as small as it can be. */
TB_STATIC void tighten(const detection *d, int32_t i)
{
    const int32_t s = d->world->model->colliding_shapes[i];
    if (!d->tight[i]) d->boxes[i] = swept_box(d, s, tb_shape_box(&d->shapes[s]));
    d->tight[i] = true;
}

/* True if two colliding shapes whose boxes overlap still overlap with tight boxes. A plane is
 * below everything: there the pair's own test is as fast. */
TB_STATIC bool are_near(const detection *d, tb_pair pair)
{
    const int32_t *colliding = d->world->model->colliding_shapes;
    if (d->tight[pair.a] && d->tight[pair.b]) return true;
    if (d->shapes[colliding[pair.a]].type == TB_SHAPE_PLANE ||
        d->shapes[colliding[pair.b]].type == TB_SHAPE_PLANE)
        return true;
    tighten(d, pair.a);
    if (!tb_box_overlap(&d->boxes[pair.a], &d->boxes[pair.b])) return false;
    tighten(d, pair.b);
    return tb_box_overlap(&d->boxes[pair.a], &d->boxes[pair.b]);
}

TB_STATIC tb_status collide(const detection *d, point_list *list, int32_t a, int32_t b)
{
    tb_world *w = d->world;
    const tb_real margin = pair_margin(d, a, b);
    for (;;) {
        const int32_t count = tb_collide_pair(&d->shapes[a], &d->shapes[b], margin, list->points,
                                              list->capacity, w->arena, &w->collide_flags);
        if (count < 0) return TB_RESOURCE_EXHAUSTED;
        if (count > 0 && tb_sleep_touch(w, a, b)) return TB_OK;
        if (count <= list->capacity) return count ? add_contacts(w, list, a, b, count) : TB_OK;
        list->capacity = 2 * count;
        list->points = TB_ARENA_ARRAY(w->arena, tb_contact_point, list->capacity);
        if (!list->points) return TB_RESOURCE_EXHAUSTED;
    }
}

#include "step/stages/detect/collide_element.h"

/* Adds the contacts of all pairs of shapes and of elements, in the order of the shapes. */
TB_STATIC tb_status collide_all(detection *d, point_list *list, const tb_pair *pairs, int32_t count)
{
    const int32_t *colliding = d->world->model->colliding_shapes;
    element_pose *poses = NULL;
    element_pairs others = {NULL, 0, 0};
    int32_t q = 0;
    tb_status status = pose_elements(d, &poses, &others);
    for (int32_t p = 0; p <= count && status == TB_OK; p++) {
        const int32_t a = p < count ? colliding[pairs[p].a] : INT32_MAX;
        const int32_t b = p < count ? colliding[pairs[p].b] : INT32_MAX;
        for (; q < others.count && status == TB_OK &&
               (others.pairs[q].a < a || (others.pairs[q].a == a && others.pairs[q].b < b));
             q++)
            status = collide_element(d, list, others.pairs[q], poses);
        if (p < count && status == TB_OK && are_near(d, pairs[p])) status = collide(d, list, a, b);
    }
    return status;
}

/* Rows that a contact can have. */
TB_STATIC int32_t most_rows(const tb_model *m)
{
    int32_t most = 1;
    for (int32_t i = 0; i < m->number_of_pairs; i++) {
        const int32_t rows = (int32_t)m->pairs[i].surface.kind;
        most = rows > most ? rows : most;
    }
    for (int32_t i = 0; i < m->number_of_colliding_shapes; i++) {
        const int32_t rows = (int32_t)m->shapes[m->colliding_shapes[i]].surface.kind;
        most = rows > most ? rows : most;
    }
    return most;
}

TB_EXTERN tb_status tb_world_detect(tb_world *world, tb_error *error)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    detection d = {.world = w};
    point_list list = {.capacity = 64};
    list.points = TB_ARENA_ARRAY(w->arena, tb_contact_point, list.capacity);
    d.tight = TB_ARENA_ARRAY(w->arena, bool, m->number_of_colliding_shapes);
    if (!list.points || !d.tight || !pose_shapes(&d))
        return tb_fail_memory(error, 0, "a step's shapes");

    tb_pair *pairs = NULL;
    int32_t number_of_pairs = 0;
    const tb_status status = find_pairs(&d, &pairs, &number_of_pairs);
    if (status == TB_INVALID_ARGUMENT) return TB_DIVERGED; /* boxes out of the range of numbers */
    if (status != TB_OK) return tb_fail(error, status, "broad phase: %s", tb_status_text(status));

    /* about as many as in the last step, so that a warm world copies nothing */
    const int32_t last = w->state->number_of_contacts;
    const int32_t count = last > number_of_pairs ? last : number_of_pairs;
    if (!tb_contacts_begin(w, count + count / 8 + 64, most_rows(m)))
        return tb_fail_memory(error, 0, "a step's contact rows");
    if (collide_all(&d, &list, pairs, number_of_pairs) != TB_OK || add_merged(w, &list) != TB_OK)
        return tb_fail_memory(error, 0, "a step's contacts");
    tb_contacts_end(w);
    return TB_OK;
}

#endif
