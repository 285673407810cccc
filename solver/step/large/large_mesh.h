/* Large world: contacts with surfaces, which are meshes and height fields (detect_team.c).
 *
 * First each pair whose boxes meet goes down the mesh's tree: most shapes in the box of a bin or
 * above a terrain are far from its triangles. The pairs that remain are listed behind the other hard
 * pairs, sorted by the type of the convex shape. Teams of lanes take some of them at once
 * (tb_collide_meshes), each team in scratch memory of its own. A pair can have any number of points,
 * so their place is taken from a common list; which place a pair gets depends on the order of the
 * teams, and nothing else does. Where the scratch is too small, a team halves its share of pairs;
 * one pair alone that has too little halts the world (large_world.h). */
#ifndef TB_LARGE_MESH_H
#define TB_LARGE_MESH_H

#include "collide/mesh/mesh_near.h"
#include "step/large/large_layout.h"
#include "step/large/large_pairs.h"

#ifdef TB_DEVICE /* teams of lanes look for the points */

TB_LANE tb_posed_shape tb_large_posed(const tb_large_world *f, const tb_model_shape *shape,
                                      const tb_large_body *body)
{
    const tb_pose pose = tb_large_pose(body);
    return tb_shape_at(f->model, shape, &pose);
}

TB_LANE tb_flight tb_large_flight(const tb_large_body *body, const tb_model_shape *shape,
                                  const tb_posed_shape *posed)
{
    tb_flight flight;
    flight.box = tb_shape_box(posed);
    flight.origin = tb_large_position(body);
    flight.velocity = tb_quad_vector(body->start_linear);
    flight.angular = tb_quad_vector(body->start_angular);
    flight.spin = tb_shape_spin(shape, flight.angular);
    return flight;
}

/* tb_large_margin, or the smaller one of two surfaces. */
TB_LANE tb_real tb_large_surface_margin(const tb_large_world *f, const tb_large_sides *s,
                                        const tb_posed_shape *a, const tb_posed_shape *b)
{
    const tb_real margin = tb_large_margin(f, s);
    if (!tb_large_is_surface(f->model, s->shape_a) || !tb_large_is_surface(f->model, s->shape_b))
        return margin;
    const tb_flight own = tb_large_flight(s->body_a, s->shape_a, a);
    const tb_flight other = tb_large_flight(s->body_b, s->shape_b, b);
    return tb_local_margin(&own, &other, margin, f->look_ahead, f->margin);
}

/* Pairs with surfaces that are apart are hard no longer. */
TB_STATIC void tb_large_stage_near_surfaces(const tb_large_world *f)
{
    if (tb_large_stopped(f)) return;
    TB_GRID_EACH(i, f->control->pairs)
    {
        if (!f->hard_of[i]) continue;
        const tb_large_sides s = tb_large_sides_of(f, i);
        if (!tb_large_has_surface(f, &s)) continue;
        const tb_posed_shape a = tb_large_posed(f, s.shape_a, s.body_a);
        const tb_posed_shape b = tb_large_posed(f, s.shape_b, s.body_b);
        f->hard_of[i] = tb_mesh_is_near(&a, &b, tb_large_margin(f, &s));
    }
}

/* The first pair with a surface in the sorted list of hard pairs. */
TB_LANE int32_t tb_large_first_surface(const tb_large_world *f)
{
    int32_t first = 0, end = f->control->hard;
    while (first < end) {
        const int32_t middle = first + (end - first) / 2;
        if (f->sorted_kinds[middle] < TB_LARGE_KINDS)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* A team of lanes, and its memory: the account of an arena, then the arena's bytes. */
typedef struct tb_large_team {
    int32_t number, teams;
    tb_arena *arena;
    uint32_t flags; /* of this lane's pairs */
} tb_large_team;

static_assert(sizeof(tb_arena) <= TB_LARGE_ALIGNMENT, "the account of a team has its place");

TB_LANE tb_large_team tb_large_team_of(const tb_large_world *f)
{
    tb_large_team team;
    const int32_t lanes = tb_team_lanes(), most = tb_grid_lanes() / lanes;
    team.number = tb_grid_lane() / lanes;
    team.teams = most < f->capacity.teams ? most : f->capacity.teams;
    team.arena = NULL;
    if (team.number < team.teams)
        team.arena =
            (tb_arena *)(void *)(f->scratch + (int64_t)team.number * f->capacity.team_bytes);
    team.flags = 0;
    return team;
}

TB_LANE void tb_large_empty_arena(const tb_large_world *f, tb_arena *arena)
{
    tb_team_sync(); /* all lanes are done with the memory */
    if (TB_LEADER)
        tb_arena_over(arena, (unsigned char *)arena + TB_LARGE_ALIGNMENT,
                      (size_t)f->capacity.team_bytes - TB_LARGE_ALIGNMENT);
    tb_team_sync();
}

/* Copies the points of `count` pairs to the common list, and counts those that Moreau's rule
 * keeps. Lanes of a team together. */
TB_LANE void tb_large_keep_points(const tb_large_world *f, int32_t from, int32_t count,
                                  const tb_mesh_question *asked)
{
    const int32_t total = asked[count - 1].first + asked[count - 1].count;
    int32_t at = 0;
    if (TB_LEADER) at = tb_grid_take(&f->control->surface_points, total);
    tb_team_share(&at, sizeof at);
    if (at < 0 || total > f->capacity.surface_points - at) {
        if (TB_LEADER) tb_large_stop(f, TB_LARGE_FULL);
        return;
    }
    TB_EACH (i, count) {
        const int32_t pair = f->sorted_hard[from + i], first = at + asked[i].first;
        const tb_large_sides s = tb_large_sides_of(f, pair);
        tb_contact_point *points = f->surface_points + first;
        for (int32_t k = 0; k < asked[i].count; k++) points[k] = asked[i].points[k];
        const int32_t kept = tb_large_store_contact(f, &s, points, asked[i].count);
        f->surface_from[f->hard_from[pair]] = first;
        f->touching[pair] = tb_large_touching(f, kept);
    }
}

/* The points of `count` pairs from place `from` of the list. Lanes of a team together. */
TB_LANE tb_status tb_large_collide_surfaces(const tb_large_world *f, tb_large_team *team,
                                            int32_t from, int32_t count)
{
    tb_large_empty_arena(f, team->arena);
    tb_mesh_question *asked = TB_ARENA_ARRAY(team->arena, tb_mesh_question, count);
    tb_posed_shape *shapes = TB_ARENA_ARRAY(team->arena, tb_posed_shape, 2 * count);
    if (!asked || !shapes) return TB_RESOURCE_EXHAUSTED;
    TB_EACH (i, count) {
        const tb_large_sides s = tb_large_sides_of(f, f->sorted_hard[from + i]);
        shapes[2 * i] = tb_large_posed(f, s.shape_a, s.body_a);
        shapes[2 * i + 1] = tb_large_posed(f, s.shape_b, s.body_b);
        asked[i].a = &shapes[2 * i];
        asked[i].b = &shapes[2 * i + 1];
        asked[i].margin = tb_large_surface_margin(f, &s, asked[i].a, asked[i].b);
    }
    tb_team_sync();
    const tb_status status = tb_collide_meshes(asked, count, team->arena, &team->flags);
    if (status == TB_OK) tb_large_keep_points(f, from, count, asked);
    return status;
}

/* All pairs of a share, as many at once as the team's memory allows. False: it is too small for
 * one. */
TB_LANE bool tb_large_collide_share(const tb_large_world *f, tb_large_team *team, int32_t from,
                                    int32_t end)
{
    int32_t at_once = end - from;
    while (from < end) {
        const int32_t count = at_once < end - from ? at_once : end - from;
        if (tb_large_collide_surfaces(f, team, from, count) == TB_OK)
            from += count;
        else if (count > 1)
            at_once = (count + 1) / 2;
        else
            return false;
    }
    return true;
}

/* The lanes of a launch form teams: a warp, or one lane that plays a card. */
TB_STATIC void tb_large_stage_surfaces(const tb_large_world *f)
{
    if (tb_large_stopped(f)) return;
    tb_large_team team = tb_large_team_of(f);
    if (team.arena == NULL) return;
    const int32_t first = tb_large_first_surface(f), pairs = f->control->hard - first;
    int32_t share = (pairs + team.teams - 1) / team.teams;
    if (share > TB_LARGE_TEAM_PAIRS) share = TB_LARGE_TEAM_PAIRS;
    for (int64_t at = (int64_t)team.number * share; at < pairs; at += (int64_t)team.teams * share) {
        const int32_t from = (int32_t)at, end = from + share < pairs ? from + share : pairs;
        if (tb_large_collide_share(f, &team, first + from, first + end)) continue;
        if (TB_LEADER) {
            const size_t peak = team.arena->peak + TB_LARGE_ALIGNMENT;
            const uint32_t wanted = peak < INT32_MAX ? (uint32_t)peak : (uint32_t)INT32_MAX;
            tb_grid_max_u32((uint32_t *)&f->control->team_bytes, wanted);
            tb_large_stop(f, TB_LARGE_FULL);
        }
    }
    tb_large_report_partners(f, team.flags);
}

#endif
#endif
