/* Many pairs with meshes by a team of lanes (base/team.h): tb_collide_mesh for many pairs, with the
 * triangles of all pairs distributed over the lanes.
 *
 * Few pairs of a world have meshes, and one of them can have hundreds of candidate triangles.
 * The stages of mesh_internal.h therefore run for all pairs at once. The trees are descended
 * level by level; every level is a list of nodes in depth-first order. The leaves give a list of
 * triangles that may meet, and each lane takes one of these after another, with its own scratch.
 * Positions in the lists are counted before writing, so points have the order of the CPU for any
 * number of lanes. */
#ifdef TB_DEVICE

#include "collide/mesh/mesh_internal.h"

/* Nodes or triangles of a task. */
typedef struct team_place {
    int32_t task;
    bool leaf; /* nothing more to descend */
    tb_mesh_index_pair place;
} team_place;

/* Part of a list. */
typedef struct team_range {
    int32_t first, end;
} team_range;

/* A task's part of the lists. */
typedef struct team_share {
    team_range leaves, met, near, points;
    bool behind;     /* the shape's centre may be inside the mesh */
    int32_t regions; /* of its points */
    int32_t kept;    /* points of its manifolds */
    int32_t written; /* index of the first written point */
} team_share;

/* Position of the shape's centre relative to a triangle of a task. */
typedef struct team_near {
    int32_t task;
    tb_mesh_nearest nearest;
} team_near;

typedef struct mesh_team {
    tb_arena *arena;
    tb_mesh_task *tasks;
    team_share *shares; /* tasks */
    int32_t number_of_tasks;
    team_place *leaves, *met; /* met: triangles that may meet, with their bits in `behind` */
    int32_t number_of_leaves, number_of_met;
    bool *behind;
    tb_mesh_contact *points;
    int32_t number_of_points, capacity;
    tb_epa *rooms; /* scratch for a number of lanes; NULL until needed */
    int32_t number_of_rooms;
    unsigned char *scratch; /* lanes x scratch_bytes */
    size_t scratch_bytes;
} mesh_team;

/* Data of one lane. */
typedef struct mesh_lane {
    tb_mesh_job job; /* of `task` */
    int32_t task;    /* -1: none yet */
    tb_mesh_facing facing;
    tb_arena arena; /* over the lane's scratch */
} mesh_lane;

/* Whether an item of a list is the first, or the last, of its task. */
TB_STATIC bool begins_task(const team_place *list, int32_t i)
{
    return i == 0 || list[i - 1].task != list[i].task;
}

TB_STATIC bool ends_task(const team_place *list, int32_t count, int32_t i)
{
    return i + 1 == count || list[i + 1].task != list[i].task;
}

/* ---- before the walk ---- */

/* Memory of one lane for one triangle: clipping, faces and points. */
TB_STATIC size_t scratch_of(const tb_mesh_job *j)
{
    const int32_t corners = j->largest > TB_MESH_DISC_CORNERS ? j->largest : TB_MESH_DISC_CORNERS;
    return (size_t)tb_mesh_most_points(j) * sizeof(tb_mesh_contact) +
           2 * (size_t)(corners + 8) * sizeof(tb_mesh_corner) +
           2 * (size_t)corners * sizeof(tb_vec3) + 8 * TB_ARENA_ALIGNMENT;
}

/* One lane builds the triangles of a height field; the memory stays allocated for all lanes. */
TB_STATIC bool make_parts(mesh_team *m, int32_t task)
{
    int32_t made = 1;
    tb_team_sync(); /* all lanes have used the arena's counters */
    if (TB_LEADER) {
        tb_arena alone = tb_arena_alone(m->arena);
        made = tb_mesh_parts(&m->tasks[task], &alone);
        m->arena->used = alone.used;
        m->arena->peak = alone.peak;
    }
    tb_team_sync();
    tb_team_share(&made, sizeof made);
    return made != 0;
}

TB_CALLED bool begin_tasks(mesh_team *m, const tb_mesh_question *asked)
{
    tb_arena *arena = m->arena;
    m->tasks = TB_ARENA_ARRAY(arena, tb_mesh_task, m->number_of_tasks);
    m->shares = TB_ARENA_ZEROED(arena, team_share, m->number_of_tasks);
    if (!m->tasks || !m->shares) return false;
    TB_EACH (i, m->number_of_tasks)
        tb_mesh_begin(&m->tasks[i], asked[i].a, asked[i].b, asked[i].margin);
    tb_team_sync();
    for (int32_t i = 0; i < m->number_of_tasks; i++)
        if (!make_parts(m, i) || !tb_mesh_solid(&m->tasks[i].job, arena)) return false;
    tb_team_sync();
    for (int32_t i = 0; i < m->number_of_tasks; i++) {
        const size_t bytes = scratch_of(&m->tasks[i].job);
        m->scratch_bytes = bytes > m->scratch_bytes ? bytes : m->scratch_bytes;
    }
    m->scratch_bytes =
        (m->scratch_bytes + TB_ARENA_ALIGNMENT - 1) / TB_ARENA_ALIGNMENT * TB_ARENA_ALIGNMENT;
    m->scratch =
        (unsigned char *)tb_arena_take_array(arena, (size_t)tb_team_lanes(), m->scratch_bytes);
    return m->scratch != NULL;
}

/* ---- the walk ---- */

/* Descends an item: writes the item if it is a leaf, its halves, or nothing. */
TB_STATIC int32_t descend_item(const mesh_team *m, const team_place *item, team_place next[2])
{
    next[0] = next[1] = *item;
    if (item->leaf) return 1;
    tb_mesh_index_pair halves[2];
    const int found = tb_mesh_descend(&m->tasks[item->task].job, item->place, halves);
    next[0].leaf = found == 1;
    if (found == 2)
        for (int k = 0; k < 2; k++) next[k].place = halves[k];
    return found;
}

/* Descends level by level until only leaves remain. */
TB_CALLED bool find_leaves(mesh_team *m)
{
    int32_t count = m->number_of_tasks;
    team_place *items = TB_ARENA_ARRAY(m->arena, team_place, count);
    if (!items) return false;
    TB_EACH (i, count) items[i] = TB_VALUE(team_place){.task = i, .leaf = false, .place = {0, 0}};
    tb_team_sync();
    bool inner = true;
    while (inner) {
        int32_t found = 0;
        bool own_inner = false;
        team_place *level = TB_ARENA_ARRAY(m->arena, team_place, 2 * (size_t)count);
        if (!level) return false;
        for (int32_t base = 0; base < count; base += tb_team_lanes()) {
            const int32_t i = base + tb_team_lane();
            team_place next[2];
            const int32_t own = i < count ? descend_item(m, &items[i], next) : 0;
            int32_t total;
            const int32_t at = found + tb_team_before(own, &total);
            for (int32_t k = 0; k < own; k++) level[at + k] = next[k];
            own_inner = own_inner || own == 2;
            found += total;
        }
        inner = tb_team_any(own_inner);
        tb_team_sync();
        items = level;
        count = found;
    }
    m->leaves = items;
    m->number_of_leaves = count;
    TB_EACH (i, count) {
        team_range *leaves = &m->shares[items[i].task].leaves;
        if (begins_task(items, i)) leaves->first = i;
        if (ends_task(items, count, i)) leaves->end = i + 1;
    }
    return true;
}

/* Writes the triangles of a leaf that may meet from `to` on, or only counts them. */
TB_STATIC int32_t meet_leaf(const mesh_team *m, const team_place *leaf, team_place *to)
{
    const tb_mesh_job *j = &m->tasks[leaf->task].job;
    const int32_t size = tb_mesh_leaf_size(j, leaf->place);
    int32_t count = 0;
    tb_mesh_reach reach;
    reach.index = -1;
    for (int32_t k = 0; k < size; k++) {
        tb_mesh_index_pair triangles;
        if (!tb_mesh_leaf_meets(j, leaf->place, k, &reach, &triangles)) continue;
        if (to)
            to[count] = TB_VALUE(team_place){.task = leaf->task, .leaf = true, .place = triangles};
        count++;
    }
    return count;
}

TB_CALLED bool find_met(mesh_team *m)
{
    int32_t *counts = TB_ARENA_ARRAY(m->arena, int32_t, m->number_of_leaves);
    int32_t own = 0;
    if (!counts) return false;
    TB_EACH (i, m->number_of_leaves) {
        counts[i] = meet_leaf(m, &m->leaves[i], NULL);
        own += counts[i];
    }
    tb_team_before(own, &m->number_of_met);
    m->met = TB_ARENA_ARRAY(m->arena, team_place, m->number_of_met);
    m->behind = TB_ARENA_ARRAY(m->arena, bool, m->number_of_met);
    if (!m->met || !m->behind) return false;
    int32_t found = 0;
    for (int32_t base = 0; base < m->number_of_leaves; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        int32_t total;
        const int32_t count = i < m->number_of_leaves ? counts[i] : 0;
        const int32_t at = found + tb_team_before(count, &total);
        if (count > 0) (void)meet_leaf(m, &m->leaves[i], &m->met[at]);
        found += total;
    }
    tb_team_sync();
    TB_EACH (i, m->number_of_met) {
        team_range *met = &m->shares[m->met[i].task].met;
        if (begins_task(m->met, i)) met->first = i;
        if (ends_task(m->met, m->number_of_met, i)) met->end = i + 1;
    }
    tb_team_sync();
    return true;
}

/* ---- points ---- */

/* Copies a task's job to the lane, without points. */
TB_STATIC void take_job(const mesh_team *m, mesh_lane *lane, int32_t task)
{
    tb_mesh_job *j = &lane->job;
    if (lane->task != task) *j = m->tasks[task].job;
    if (lane->task != task) lane->facing.index = -1;
    lane->task = task;
    tb_arena_over(&lane->arena, m->scratch + (size_t)tb_team_lane() * m->scratch_bytes,
                  m->scratch_bytes);
    lane->arena.lanes = TB_ARENA_OF_ONE_LANE;
    j->points.arena = &lane->arena;
    j->points.count = 0;
    j->points.capacity = tb_mesh_most_points(j);
    j->points.items = TB_ARENA_ARRAY(&lane->arena, tb_mesh_contact, j->points.capacity);
    j->points.failed = !tb_mesh_job_buffers(j);
    j->behind = j->wants_room = false;
    j->room = NULL;
}

/* The points of triangle i of the list. */
TB_CALLED void meet_item(const mesh_team *m, mesh_lane *lane, int32_t i, tb_epa *room)
{
    take_job(m, lane, m->met[i].task);
    lane->job.room = room;
    tb_mesh_meet(&lane->job, &lane->facing, m->met[i].place);
}

/* Allocates scratch for as many of `wanted` lanes as the arena's memory allows, at least one. */
TB_STATIC bool take_rooms(mesh_team *m, int32_t wanted)
{
    const tb_arena *arena = m->arena;
    const size_t used = arena->used + TB_ARENA_ALIGNMENT;
    const size_t fitting = arena->capacity > used ? (arena->capacity - used) / sizeof(tb_epa) : 0;
    tb_team_sync(); /* all lanes have read the arena's counters */
    if (m->number_of_rooms >= wanted) return true;
    if (m->rooms && fitting <= (size_t)m->number_of_rooms) return true;
    m->number_of_rooms = fitting < 1 ? 1 : (size_t)wanted < fitting ? wanted : (int32_t)fitting;
    m->rooms = TB_ARENA_ARRAY(m->arena, tb_epa, m->number_of_rooms);
    return m->rooms != NULL;
}

/* Repeats triangles that lacked the scratch for overlapping cores. */
TB_STATIC bool meet_deep(mesh_team *m, mesh_lane *lane, int32_t i)
{
    int32_t wanted;
    const bool wants = i < m->number_of_met && lane->job.wants_room;
    const int32_t place = tb_team_before(wants, &wanted);
    if (wanted == 0) return true;
    if (!take_rooms(m, wanted)) return false;
    for (int32_t first = 0; first < wanted; first += m->number_of_rooms) {
        if (wants && place >= first && place < first + m->number_of_rooms)
            meet_item(m, lane, i, &m->rooms[place - first]);
        tb_team_sync();
    }
    return true;
}

/* Reserves `more` points in the common list. */
TB_STATIC bool reserve_points(mesh_team *m, int32_t more)
{
    if (m->number_of_points + more <= m->capacity) return true;
    int32_t capacity = m->capacity > 0 ? 2 * m->capacity : 64;
    while (capacity < m->number_of_points + more) capacity *= 2;
    tb_mesh_contact *points = TB_ARENA_ARRAY(m->arena, tb_mesh_contact, capacity);
    if (!points) return false;
    if (m->number_of_points > 0)
        tb_team_copy(points, m->points, (size_t)m->number_of_points * sizeof *points);
    tb_team_sync();
    m->points = points;
    m->capacity = capacity;
    return true;
}

/* Appends the points of the lanes, `count` of this lane, to the common list. begins, ends:
 * whether they are the first and the last of the lane's task. Indices are relative to the task. */
TB_STATIC bool append_points(mesh_team *m, const mesh_lane *lane, int32_t count, bool begins,
                             bool ends)
{
    int32_t total;
    const int32_t at = m->number_of_points + tb_team_before(count, &total);
    if (!reserve_points(m, total)) return false;
    if (begins) m->shares[lane->task].points.first = at;
    if (ends) m->shares[lane->task].points.end = at + count;
    tb_team_sync();
    const int32_t before = count > 0 ? at - m->shares[lane->task].points.first : 0;
    for (int32_t k = 0; k < count; k++) {
        tb_mesh_contact *c = &m->points[at + k];
        *c = lane->job.points.items[k];
        if (c->instead_of >= 0) c->instead_of += before;
    }
    m->number_of_points += total;
    tb_team_sync();
    return true;
}

TB_CALLED tb_status meet_all(mesh_team *m, mesh_lane *lane, uint32_t *flags)
{
    const int32_t count = m->number_of_met;
    bool failed = false;
    for (int32_t base = 0; base < count; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        const bool own = i < count;
        if (own) meet_item(m, lane, i, NULL);
        if (!meet_deep(m, lane, i)) return TB_RESOURCE_EXHAUSTED;
        if (own) {
            m->behind[i] = lane->job.behind;
            *flags |= lane->job.flags;
            failed = failed || lane->job.points.failed;
        }
        if (!append_points(m, lane, own ? lane->job.points.count : 0, own && begins_task(m->met, i),
                           own && ends_task(m->met, count, i)))
            return TB_RESOURCE_EXHAUSTED;
    }
    return tb_team_any(failed) ? TB_INTERNAL : TB_OK; /* exceeds the largest number of points of
                                                         a triangle */
}

/* ---- centres inside a mesh ---- */

/* Finds tasks whose centre may be inside: centres behind a triangle in contact. */
TB_STATIC bool judge_behind(mesh_team *m)
{
    bool any = false;
    TB_EACH (t, m->number_of_tasks) {
        team_share *share = &m->shares[t];
        for (int32_t i = share->met.first; i < share->met.end && !share->behind; i++)
            share->behind = m->tasks[t].job.kind == TB_MESH_ON_CONVEX && m->behind[i];
        any = any || share->behind;
    }
    tb_team_sync();
    return tb_team_any(any);
}

/* Measures all triangles near such a centre; NULL if the arena refuses. */
TB_STATIC team_near *measure_near(mesh_team *m)
{
    int32_t found = 0, own = 0, all;
    TB_EACH (i, m->number_of_leaves) {
        const team_place *leaf = &m->leaves[i];
        if (m->shares[leaf->task].behind)
            own += tb_mesh_leaf_size(&m->tasks[leaf->task].job, leaf->place);
    }
    tb_team_before(own, &all);
    team_near *near = TB_ARENA_ARRAY(m->arena, team_near, all);
    if (!near) return NULL;
    for (int32_t base = 0; base < m->number_of_leaves; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        const team_place *leaf = i < m->number_of_leaves ? &m->leaves[i] : NULL;
        team_share *share = leaf ? &m->shares[leaf->task] : NULL;
        int32_t size = 0, total;
        if (leaf && share->behind) size = tb_mesh_leaf_size(&m->tasks[leaf->task].job, leaf->place);
        const int32_t at = found + tb_team_before(size, &total);
        const tb_triangle_mesh *mesh = size > 0 ? m->tasks[leaf->task].job.view.mesh : NULL;
        for (int32_t k = 0; k < size; k++) {
            near[at + k].task = leaf->task;
            near[at + k].nearest.triangle =
                mesh->tree_triangles[mesh->nodes[leaf->place.a].first + k];
        }
        if (leaf && begins_task(m->leaves, i)) share->near.first = at;
        if (leaf && ends_task(m->leaves, m->number_of_leaves, i)) share->near.end = at + size;
        found += total;
    }
    tb_team_sync();
    TB_EACH (i, found)
        near[i].nearest =
            tb_mesh_near_centre(&m->tasks[near[i].task].job, near[i].nearest.triangle);
    tb_team_sync();
    return near;
}

/* Pushes out shapes whose centre is inside: new points replace their old points. */
TB_CALLED bool push_out_all(mesh_team *m, mesh_lane *lane)
{
    if (!judge_behind(m)) return true;
    const team_near *near = measure_near(m);
    if (!near) return false;
    for (int32_t base = 0; base < m->number_of_tasks; base += tb_team_lanes()) {
        const int32_t t = base + tb_team_lane();
        bool pushed = false;
        if (t < m->number_of_tasks && m->shares[t].behind) {
            const team_range range = m->shares[t].near;
            tb_mesh_nearest best = {0, 0, -1};
            for (int32_t i = range.first; i < range.end; i++)
                tb_mesh_nearer(&best, &near[i].nearest, m->tasks[t].job.noise);
            take_job(m, lane, t);
            pushed = tb_mesh_push_out(&lane->job, &best);
        }
        if (!append_points(m, lane, pushed ? lane->job.points.count : 0, pushed, pushed))
            return false;
    }
    return true;
}

/* ---- manifolds ---- */

/* All lanes process a region with more points together. */
enum { TEAM_REGION = 48 };

/* Processes the regions of all tasks: distributed over the lanes, or, with `together`, the large
 * regions in sequence. */
TB_CALLED void choose_all(const mesh_team *m, const tb_mesh_desk *desk, bool together)
{
    for (int32_t t = 0, dealt = 0; t < m->number_of_tasks; t++) {
        const team_share *share = &m->shares[t];
        const tb_mesh_desk part = tb_mesh_desk_part(desk, share->points.first);
        for (int32_t i = 0; i < share->regions; i++) {
            const bool many = tb_mesh_region_size(&part, i) > TEAM_REGION;
            if (many != together) continue;
            if (!together && dealt++ % tb_team_lanes() != tb_team_lane()) continue;
            tb_mesh_choose(m->points + share->points.first, m->tasks[t].job.noise, &part, i,
                           together);
        }
    }
    tb_team_sync();
}

TB_CALLED bool reduce_all(mesh_team *m, tb_mesh_desk *desk)
{
    if (!tb_mesh_desk_take(desk, m->number_of_points, m->arena)) return false;
    TB_EACH (t, m->number_of_tasks) {
        team_share *share = &m->shares[t];
        const int32_t first = share->points.first, count = share->points.end - first;
        if (count == 0) continue;
        const tb_mesh_pair pair = tb_mesh_pair_of(&m->tasks[t]);
        const tb_mesh_desk part = tb_mesh_desk_part(desk, first);
        share->regions =
            tb_mesh_group(m->points + first, count, &pair, m->tasks[t].job.noise, &part);
    }
    tb_team_sync();
    choose_all(m, desk, true);
    choose_all(m, desk, false);
    TB_EACH (t, m->number_of_tasks) {
        team_share *share = &m->shares[t];
        const tb_mesh_desk part = tb_mesh_desk_part(desk, share->points.first);
        share->kept = tb_mesh_gather(m->points + share->points.first, &part, share->regions);
    }
    tb_team_sync();
    return true;
}

/* Writes the points of all tasks behind all other memory. */
TB_CALLED tb_contact_point *write_points(mesh_team *m, const tb_mesh_desk *desk, int32_t *count)
{
    int32_t own = 0;
    TB_EACH (t, m->number_of_tasks) own += m->shares[t].kept;
    tb_team_before(own, count);
    tb_contact_point *points = TB_ARENA_ARRAY(m->arena, tb_contact_point, *count);
    if (!points) return NULL;
    int32_t written = 0;
    for (int32_t base = 0; base < m->number_of_tasks; base += tb_team_lanes()) {
        const int32_t t = base + tb_team_lane();
        team_share *share = t < m->number_of_tasks ? &m->shares[t] : NULL;
        int32_t total;
        const int32_t at = written + tb_team_before(share ? share->kept : 0, &total);
        if (share) share->written = at;
        for (int32_t k = 0; share && k < share->kept; k++)
            points[at + k] = tb_mesh_point(&m->tasks[t], &desk->result[share->points.first + k]);
        written += total;
    }
    tb_team_sync();
    return points;
}

/* ---- all ---- */

/* Points of all tasks; `shares` has each task's range. */
TB_STATIC tb_status find_mesh_points(mesh_team *m, const tb_mesh_question *asked,
                                     tb_contact_point **points, int32_t *count, uint32_t *flags)
{
    mesh_lane lane;
    tb_mesh_desk desk;
    lane.task = -1;
    if (!begin_tasks(m, asked) || !find_leaves(m) || !find_met(m)) return TB_RESOURCE_EXHAUSTED;
    const tb_status status = meet_all(m, &lane, flags);
    if (status != TB_OK) return status;
    if (!push_out_all(m, &lane) || !reduce_all(m, &desk)) return TB_RESOURCE_EXHAUSTED;
    *points = write_points(m, &desk, count);
    return *points ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

TB_EXTERN tb_status tb_collide_meshes(tb_mesh_question *asked, int32_t number, tb_arena *arena,
                                      uint32_t *flags)
{
    mesh_team m;
    memset(&m, 0, sizeof m);
    m.arena = arena;
    m.number_of_tasks = number;
    const tb_arena_mark mark = tb_arena_get_mark(arena);
    tb_contact_point *points = NULL;
    int32_t count = 0;
    const tb_status status = find_mesh_points(&m, asked, &points, &count, flags);
    if (status != TB_OK) return status;
    TB_EACH (i, number) asked[i].count = m.shares[i].kept;
    TB_EACH (i, number) asked[i].first = m.shares[i].written;

    /* Moves the points to the start of the scratch. The scratch is larger than the points, so
     * the two do not overlap. */
    tb_arena_return_to(arena, mark);
    tb_contact_point *kept = TB_ARENA_ARRAY(arena, tb_contact_point, count);
    tb_team_copy(kept, points, (size_t)count * sizeof *kept);
    tb_team_sync();
    TB_EACH (i, number) asked[i].points = kept + asked[i].first;
    tb_team_sync();
    return TB_OK;
}

#endif
