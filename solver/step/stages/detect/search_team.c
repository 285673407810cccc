/* The search for the contacts of one world by a team of lanes (base/team.h): pairs of shapes that are near
 * each other, their points, and the places of the points' contacts.
 *
 * It needs poses and velocities alone. So a card searches while another team makes the begin of the same
 * step (gpu/batch/step_begin.cu). Where that search found too little memory, and in the kernel of worlds
 * that go alone, tb_world_detect searches first. */
#ifdef TB_DEVICE

#include "step/stages/detect/near_list.h"

/* ---- pairs ---- */

/* Bits of the shapes behind `a` in the list that its box meets and that may touch it, 32 of them
 * from `first` on. All boxes first, whose reads do not wait for each other; few of them meet. */
TB_STATIC uint32_t near_bits(const detection *d, int32_t a, int32_t first)
{
    const tb_model *m = d->world->model;
    const int32_t shape = m->colliding_shapes[a], root = m->filters[shape].root;
    const int32_t count = m->number_of_colliding_shapes - first;
    const tb_box box = d->boxes[a];
    uint32_t met = 0, bits = 0;
    TB_UNROLLED
    for (int32_t k = a < first ? 0 : a + 1 - first; k < 32 && k < count; k++)
        met |= (tb_box_overlap_likely(&box, &d->boxes[first + k]) ? UINT32_C(1) : 0) << k;
    for (; met; met &= met - 1) {
        const uint32_t bit = met & (0 - met);
        const int32_t other = m->colliding_shapes[first + tb_count_bits(bit - 1)];
        if (m->filters[other].root != root && tb_model_shapes_collide(m, shape, other)) bits |= bit;
    }
    return bits;
}

/* Whether a shape's box is farther above a plane than contacts of both are wanted. */
TB_STATIC bool is_far_above(const detection *d, const tb_near *pair)
{
    const bool first = d->shapes[pair->a].type == TB_SHAPE_PLANE;
    const tb_posed_shape *plane = &d->shapes[first ? pair->a : pair->b];
    if (plane->type != TB_SHAPE_PLANE) return false;
    const tb_box box = d->boxes[pair->leaves[first ? 1 : 0]];
    const tb_vec3 normal = tb_m33_column(&plane->pose.rotation, 2);
    const tb_vec3 lowest =
        tb_v3(normal.x > 0 ? box.lower.x : box.upper.x, normal.y > 0 ? box.lower.y : box.upper.y,
              normal.z > 0 ? box.lower.z : box.upper.z);
    return tb_v3_dot(normal, tb_v3_sub(lowest, plane->pose.position)) >
           pair_margin(d, pair->a, pair->b);
}

/* Leaves out pairs of a plane, whose box every shape meets, with shapes that are far above it; the others move up in
 * the list. */
TB_STATIC void leave_out_far(const detection *d, tb_near_list *list)
{
    const uint32_t lower = (UINT32_C(1) << tb_team_lane()) - 1;
    int32_t kept = 0;
    for (int32_t base = 0; base < list->number_of_pairs; base += tb_team_lanes()) {
        const int32_t p = base + tb_team_lane();
        const bool keeps = p < list->number_of_pairs && !is_far_above(d, &list->pairs[p]);
        const uint32_t lanes = tb_team_ballot(keeps);
        const int32_t at = kept + tb_count_bits(lanes & lower);
        const tb_near *from = &list->pairs[p];
        tb_near own = {.count = 0};
        if (keeps) {
            own.a = from->a, own.b = from->b;
            own.leaves[0] = from->leaves[0], own.leaves[1] = from->leaves[1];
        }
        tb_team_sync();
        if (keeps && at != p) list->pairs[at] = own;
        kept += tb_count_bits(lanes);
    }
    list->number_of_pairs = kept;
    tb_team_sync();
}

/* All pairs, in order. DIVERGED where boxes have left the range of numbers. */
TB_CALLED tb_status find_pairs(const detection *d, tb_near_list *list)
{
    const tb_world *w = d->world;
    const tb_model *m = w->model;
    const int32_t shapes = m->number_of_colliding_shapes, words = (shapes + 31) / 32;
    uint32_t *bits = TB_ARENA_ARRAY(w->arena, uint32_t, (size_t)shapes * (size_t)words);
    if (!bits) return TB_RESOURCE_EXHAUSTED;
    int valid = 1;
    int32_t own = 0;
    TB_EACH (i, shapes * words) {
        const int32_t a = i / words, first = i % words * 32;
        valid = valid && tb_box_valid(&d->boxes[a]);
        bits[i] = near_bits(d, a, first);
        own += tb_count_bits(bits[i]);
    }
    if (tb_team_any(!valid)) return TB_DIVERGED;
    tb_team_before(own, &list->number_of_pairs);
    list->pairs = TB_ARENA_ARRAY(w->arena, tb_near, list->number_of_pairs);
    if (!list->pairs) return TB_RESOURCE_EXHAUSTED;

    int32_t found = 0;
    for (int32_t base = 0; base < shapes * words; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        uint32_t rest = i < shapes * words ? bits[i] : 0;
        int32_t total;
        int32_t at = found + tb_team_before(tb_count_bits(rest), &total);
        for (; rest; rest &= rest - 1) {
            tb_near *pair = &list->pairs[at++];
            pair->leaves[0] = i / words;
            pair->leaves[1] = i % words * 32 + tb_count_bits((rest & (0 - rest)) - 1);
            pair->a = m->colliding_shapes[pair->leaves[0]];
            pair->b = m->colliding_shapes[pair->leaves[1]];
            pair->count = 0;
        }
        found += total;
    }
    tb_team_sync();
    leave_out_far(d, list);
    return TB_OK;
}

/* ---- points ---- */

TB_STATIC bool is_mesh_pair(const detection *d, const tb_near *pair)
{
    return d->shapes[pair->a].type >= TB_SHAPE_MESH || d->shapes[pair->b].type >= TB_SHAPE_MESH;
}

/* Pairs with meshes, `number` of them: all at once. Their points stay in the arena. */
TB_CALLED tb_status collide_meshes(const detection *d, const tb_near_list *list, int32_t number,
                                   uint32_t *flags)
{
    tb_arena *arena = d->world->arena;
    tb_mesh_question *asked = TB_ARENA_ARRAY(arena, tb_mesh_question, number);
    int32_t *pair_of = TB_ARENA_ARRAY(arena, int32_t, number);
    if (!asked || !pair_of) return TB_RESOURCE_EXHAUSTED;
    int32_t found = 0;
    for (int32_t base = 0; base < list->number_of_pairs; base += tb_team_lanes()) {
        const int32_t p = base + tb_team_lane();
        const tb_near *pair = p < list->number_of_pairs ? &list->pairs[p] : NULL;
        const bool own = pair && is_mesh_pair(d, pair);
        int32_t total;
        const int32_t at = found + tb_team_before(own, &total);
        if (own) {
            asked[at].a = &d->shapes[pair->a];
            asked[at].b = &d->shapes[pair->b];
            asked[at].margin = pair_margin(d, pair->a, pair->b);
            pair_of[at] = p;
        }
        found += total;
    }
    tb_team_sync();
    const tb_status status = tb_collide_meshes(asked, number, arena, flags);
    if (status != TB_OK) return status;
    TB_EACH (i, number) {
        tb_near *pair = &list->pairs[pair_of[i]];
        pair->points = asked[i].points;
        pair->count = asked[i].count;
    }
    return TB_OK;
}

/* The search for a pair's points lies where the points will be. */
TB_STATIC tb_search *search_of(const tb_near *pair)
{
    static_assert(sizeof(tb_search) <= TB_MANIFOLD_POINTS * sizeof(tb_contact_point),
                  "a search finds room among a pair's points");
    return (tb_search *)(void *)pair->points;
}

/* The next stage of a pair's points. */
TB_STATIC void collide_convex(const detection *d, tb_near *pair, uint32_t *flags, tb_epa *room)
{
    pair->count = tb_collide_convex_stage(&d->shapes[pair->a], &d->shapes[pair->b],
                                          pair_margin(d, pair->a, pair->b), pair->points, flags,
                                          room, search_of(pair));
}

/* Lists the pairs that wait, in order, in the pairs' `row`, and counts them. */
TB_STATIC int32_t list_waiting(const tb_near_list *list)
{
    int32_t found = 0;
    tb_team_sync();
    for (int32_t base = 0; base < list->number_of_pairs; base += tb_team_lanes()) {
        const int32_t p = base + tb_team_lane();
        const bool own = p < list->number_of_pairs && list->pairs[p].count == TB_COLLIDE_WAITS;
        int32_t total;
        const int32_t at = found + tb_team_before(own, &total);
        if (own) list->pairs[at].row = p;
        found += total;
    }
    tb_team_sync();
    return found;
}

/* The next stage of all pairs that wait, `waiting` of them, as many at a time as there are rooms (NULL: as
 * there are lanes). Returns how many wait after it. */
TB_STATIC int32_t collide_waiting(const detection *d, const tb_near_list *list, int32_t waiting,
                                  tb_epa *room, int32_t rooms, uint32_t *flags)
{
    const int32_t lane = tb_team_lane();
    for (int32_t first = 0; first < waiting; first += rooms) {
        if (lane < rooms && first + lane < waiting)
            collide_convex(d, &list->pairs[list->pairs[first + lane].row], flags,
                           room ? &room[lane] : NULL);
    }
    return list_waiting(list);
}

/* Pairs whose cores overlap, `number` of them: each by a lane with memory of its own, as far as
 * the arena allows, at least one at a time. */
TB_CALLED tb_status collide_deep(const detection *d, const tb_near_list *list, int32_t number,
                                 uint32_t *flags)
{
    tb_arena *arena = d->world->arena;
    const tb_arena_mark mark = tb_arena_get_mark(arena);
    const size_t fitting =
        arena->capacity > arena->used + TB_ARENA_ALIGNMENT
            ? (arena->capacity - arena->used - TB_ARENA_ALIGNMENT) / sizeof(tb_epa)
            : 0;
    tb_team_sync(); /* all have read the account */
    int32_t rooms = number < tb_team_lanes() ? number : tb_team_lanes();
    if ((size_t)rooms > fitting) rooms = fitting > 0 ? (int32_t)fitting : 1;
    tb_epa *room = TB_ARENA_ARRAY(arena, tb_epa, rooms);
    if (!room) return TB_RESOURCE_EXHAUSTED;
    (void)collide_waiting(d, list, number, room, rooms, flags);
    tb_arena_return_to(arena, mark);
    return TB_OK;
}

TB_CALLED tb_status find_points(const detection *d, tb_near_list *list)
{
    tb_world *w = d->world;
    uint32_t flags = 0;
    int32_t own_meshes = 0, meshes = 0;
    tb_contact_point *points = TB_ARENA_ARRAY(
        w->arena, tb_contact_point, (size_t)TB_MANIFOLD_POINTS * (size_t)list->number_of_pairs);
    if (!points) return TB_RESOURCE_EXHAUSTED;
    TB_EACH (p, list->number_of_pairs) {
        tb_near *pair = &list->pairs[p];
        if (is_mesh_pair(d, pair)) {
            own_meshes++;
            continue;
        }
        pair->points = points + (size_t)TB_MANIFOLD_POINTS * (size_t)p;
        search_of(pair)->next = TB_SEARCH_FACES;
        collide_convex(d, pair, &flags, NULL);
    }
    tb_status status = TB_OK;
    tb_team_before(own_meshes, &meshes);
    int32_t waiting = list_waiting(list);
    if (waiting > 0) waiting = collide_waiting(d, list, waiting, NULL, tb_team_lanes(), &flags);
    if (waiting > 0) status = collide_deep(d, list, waiting, &flags);
    if (meshes > 0 && status == TB_OK) status = collide_meshes(d, list, meshes, &flags);
    tb_team_sync();
    const bool degenerate = tb_team_any((flags & TB_CONTACT_DEGENERATE) != 0);
    if (degenerate && TB_LEADER) w->collide_flags |= TB_CONTACT_DEGENERATE;
    return status;
}

/* ---- merging ---- */

/* Points of all pairs in one list, merged by one lane; the points that stay go back to their pairs. */
TB_STATIC tb_status merge_by_one(tb_world *w, tb_near_list *list)
{
    int32_t total = 0, i = 0;
    for (int32_t p = 0; p < list->number_of_pairs; p++) total += list->pairs[p].count;
    tb_merge_point *points = TB_ARENA_ARRAY(w->arena, tb_merge_point, total);
    if (!points) return TB_RESOURCE_EXHAUSTED;
    for (int32_t p = 0; p < list->number_of_pairs; p++) {
        const tb_near *pair = &list->pairs[p];
        for (int32_t k = 0; k < pair->count; k++)
            points[i++] = merge_point_of(w, pair->a, pair->b, &pair->points[k]);
    }
    if (!merge_points(w, points, total)) return TB_RESOURCE_EXHAUSTED;
    i = 0;
    for (int32_t p = 0; p < list->number_of_pairs; p++) {
        tb_near *pair = &list->pairs[p];
        const int32_t count = pair->count;
        pair->count = 0;
        for (int32_t k = 0; k < count; k++, i++)
            if (points[i].stays) pair->points[pair->count++] = points[i].point;
    }
    return TB_OK;
}

TB_CALLED tb_status merge_pairs(tb_world *w, tb_near_list *list)
{
    tb_status status = TB_OK;
    if (tb_world_alone(w)) status = merge_by_one(w, list);
    tb_world_together(w, &status);
    return status;
}

/* ---- places ---- */

/* The first pair with points on the same chains as this one, perhaps itself. */
TB_STATIC int32_t first_alike(const tb_near_list *list, int32_t p)
{
    const int32_t a = list->pairs[p].leaves[0], b = list->pairs[p].leaves[1];
    int32_t first = p;
    TB_UNROLLED
    for (int32_t i = p - 1; i >= 0; i--) {
        const tb_near *pair = &list->pairs[i];
        const int32_t unlike = (pair->leaves[0] ^ a) | (pair->leaves[1] ^ b);
        first = (pair->count > 0) & (unlike == 0) ? i : first;
    }
    return first;
}

/* Every pair with points gets a union of chains, of which only the leaves are known yet. */
TB_STATIC void number_unions(tb_near_list *list)
{
    for (int32_t base = 0; base < list->number_of_pairs; base += tb_team_lanes()) {
        const int32_t p = base + tb_team_lane();
        const bool has_points = p < list->number_of_pairs && list->pairs[p].count > 0;
        const int32_t first = has_points ? first_alike(list, p) : -1;
        const bool own = has_points && first == p;
        int32_t total;
        const int32_t at = list->number_of_unions + tb_team_before(own, &total);
        if (own)
            for (int k = 0; k < 2; k++) list->unions[at].leaves[k] = list->pairs[p].leaves[k];
        if (has_points) list->pairs[p].chains = own ? at : -1 - first;
        list->number_of_unions += total;
    }
    tb_team_sync();
    TB_EACH (p, list->number_of_pairs) {
        tb_near *pair = &list->pairs[p];
        if (pair->count > 0 && pair->chains < 0)
            pair->chains = list->pairs[-1 - pair->chains].chains;
    }
}

/* Dofs from a leaf to its root. */
TB_STATIC int32_t chain_length(const tb_world *w, int32_t leaf)
{
    if (leaf < 0) return 0;
    if (w->model->trees[w->model->dofs[leaf].tree].single_free) return 6;
    return w->dynamics.mass_row[leaf + 1] - w->dynamics.mass_row[leaf];
}

/* Makes the unions, and stores their runs. */
TB_CALLED tb_status make_unions(tb_world *w, tb_near_list *list)
{
    for (int32_t base = 0; base < list->number_of_unions; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        tb_union *own = i < list->number_of_unions ? &list->unions[i] : NULL;
        int32_t room = 0, rooms, runs = 0, all_runs;
        for (int k = 0; own && k < 2; k++) room += chain_length(w, own->leaves[k]);
        const int32_t at = tb_team_before(room, &rooms);
        int32_t *numbers = TB_ARENA_ARRAY(w->arena, int32_t, 2 * (size_t)rooms);
        int8_t *sides = TB_ARENA_ARRAY(w->arena, int8_t, rooms);
        if (!numbers || !sides) return TB_RESOURCE_EXHAUSTED;
        if (own) {
            own->chains.dofs = numbers + 2 * at;
            own->chains.parents = own->chains.dofs + room;
            own->chains.sides = sides + at;
            tb_block_merge_chains(w->model, &own->chains, own->leaves, 2);
            runs = own->chains.number_of_runs;
        }
        const int32_t before = tb_team_before(runs, &all_runs);
        if (!tb_segment_reserve(w, all_runs)) return TB_RESOURCE_EXHAUSTED;
        if (own) tb_block_store_chains(w, &own->chains, w->number_of_segments + before);
        tb_team_sync(); /* all have their places */
        if (TB_LEADER) w->number_of_segments += all_runs;
        tb_team_sync();
    }
    return TB_OK;
}

/* Numbers the contacts of all pairs, and their rows. */
TB_STATIC void place_contacts(tb_near_list *list)
{
    for (int32_t base = 0; base < list->number_of_pairs; base += tb_team_lanes()) {
        const int32_t p = base + tb_team_lane();
        tb_near *pair = p < list->number_of_pairs ? &list->pairs[p] : NULL;
        int32_t contacts = 0, rows = 0, values = 0, all_contacts, all_rows, all_values;
        if (pair && pair->count > 0) {
            const int32_t width = list->unions[pair->chains].chains.width;
            if (width == 0) pair->count = 0; /* neither side can move */
            contacts = pair->count;
            rows = contacts * pair->rows;
            values = rows * width;
        }
        const int32_t contact = list->number_of_contacts + tb_team_before(contacts, &all_contacts);
        const int32_t row = list->number_of_rows + tb_team_before(rows, &all_rows);
        const int32_t value = list->number_of_values + tb_team_before(values, &all_values);
        if (contacts > 0) {
            pair->contact = contact;
            pair->row = row;
            pair->value = value;
        }
        list->number_of_contacts += all_contacts;
        list->number_of_rows += all_rows;
        list->number_of_values += all_values;
    }
    tb_team_sync();
}

/* Numbers contacts by pair, and finds the chains of each pair's contacts. */
TB_CALLED tb_status number_contacts(tb_world *w, tb_near_list *list)
{
    const tb_model *m = w->model;
    TB_EACH (p, list->number_of_pairs) {
        tb_near *pair = &list->pairs[p];
        if (pair->count == 0) continue;
        const tb_surface surface = tb_model_pair_surface(m, pair->a, pair->b);
        pair->rows = tb_contact_law_rows(tb_contact_law(&surface));
        pair->leaves[0] = m->bodies[m->shapes[pair->a].body].last_dof;
        pair->leaves[1] = m->bodies[m->shapes[pair->b].body].last_dof;
    }
    tb_team_sync();
    list->unions = TB_ARENA_ARRAY(w->arena, tb_union, list->number_of_pairs);
    if (!list->unions) return TB_RESOURCE_EXHAUSTED;
    number_unions(list);
    const tb_status status = make_unions(w, list);
    if (status != TB_OK) return status;
    place_contacts(list);
    list->pair_of = TB_ARENA_ARRAY(w->arena, int32_t, list->number_of_contacts);
    if (!list->pair_of) return TB_RESOURCE_EXHAUSTED;
    TB_EACH (p, list->number_of_pairs) {
        const tb_near *pair = &list->pairs[p];
        for (int32_t k = 0; k < pair->count; k++) list->pair_of[pair->contact + k] = p;
    }
    tb_team_sync();
    return TB_OK;
}

/* ---- all of it ---- */

TB_EXTERN void tb_world_search(tb_world *world, tb_found *found)
{
    tb_world *w = world;
    detection d = {.world = w};
    tb_near_list list;
    memset(&list, 0, sizeof list);
    tb_status status = pose_shapes(&d) ? TB_OK : TB_RESOURCE_EXHAUSTED;
    if (status == TB_OK) status = find_pairs(&d, &list);
    TB_STAGE_DONE(TB_STAGE_BROAD);
    if (status == TB_OK) status = find_points(&d, &list);
    if (status == TB_OK && w->options->contact_merge > 0) status = merge_pairs(w, &list);
    TB_STAGE_DONE(TB_STAGE_NARROW);
    if (status == TB_OK) status = number_contacts(w, &list);
    tb_team_sync();
    found->list = list;
    found->segments = w->segments;
    found->number_of_segments = w->number_of_segments;
    found->status = status;
    found->flags = w->collide_flags;
}

#endif
