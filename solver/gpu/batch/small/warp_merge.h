/* Merging of redundant points by a warp: the clusters and representatives of step/stages/merge.h, a lane a
 * point. Whether two points are near is asked for all pairs at once; seeds and representatives then follow
 * from bits. */
#ifndef TB_GPU_WARP_MERGE_H
#define TB_GPU_WARP_MERGE_H

#include "gpu/batch/small/warp_detect.h"

TB_TEAM_FN tb_vec3 take_vector(tb_vec3 own, int32_t from)
{
    return tb_v3(tb_team_take_real(own.x, from), tb_team_take_real(own.y, from),
                 tb_team_take_real(own.z, from));
}

/* A lane's point. merges_as: as in warp_candidate; -1 without a point. */
typedef struct warp_merge_point {
    tb_vec3 position, normal;
    tb_real gap, distance;
    int32_t merges_as;
} warp_merge_point;

/* Points before the lane's own that it is near to. Distances are asked for all pairs of points, and the
 * rest for the few that they leave. Both halves of the warp have the first sixteen points, and each
 * compares them with every other one; points behind these are rare. */
TB_TEAM_FN uint32_t near_points(const warp_merge_point *own, int32_t count)
{
    enum { HALF = WARP_LANES / 2 };
    const int32_t lane = tb_team_lane(), half = lane / HALF;
    const tb_real reach = own->distance * own->distance;
    uint32_t bits = 0, near = 0;
    if (count <= HALF) {
        const tb_vec3 position = take_vector(own->position, lane % HALF);
        const tb_real within = tb_team_take_real(reach, lane % HALF);
        TB_ROLLED
        for (int32_t i = half; i < count + half; i += 2) { /* as many turns in both halves */
            const tb_vec3 way = tb_v3_sub(position, take_vector(own->position, i % HALF));
            bits |= tb_v3_dot(way, way) <= within ? 1u << i % HALF : 0;
        }
        bits |= (uint32_t)tb_team_take_real(TB_R(bits), lane ^ HALF); /* sixteen bits are exact */
    } else {
        TB_ROLLED
        for (int32_t i = 0; i < count; i++) {
            const tb_vec3 way = tb_v3_sub(own->position, take_vector(own->position, i));
            bits |= tb_v3_dot(way, way) <= reach ? 1u << i : 0;
        }
    }
    bits &= own->merges_as >= 0 ? (1u << lane) - 1 : 0;
    TB_ROLLED
    while (tb_team_any(bits != 0)) {
        const int32_t i = bits ? lowest_bit(bits) : 0;
        const tb_vec3 turn = tb_v3_sub(own->normal, take_vector(own->normal, i));
        const int32_t as = (int32_t)tb_team_take_real(TB_R(own->merges_as), i);
        const bool equal = tb_v3_dot(turn, turn) <= TB_MERGE_ANGLE * TB_MERGE_ANGLE;
        near |= bits != 0 && equal && as == own->merges_as ? 1u << i : 0;
        bits &= bits - 1;
    }
    return near;
}

/* Points that are seeds: near to no seed before them. */
TB_TEAM_FN uint32_t seeds_of(uint32_t near, bool is)
{
    uint32_t seeds = tb_team_ballot(is && near == 0);
    /* points near to others, and to no seed that is known yet: the first of them is one */
    uint32_t open = tb_team_ballot((near != 0) & ((near & seeds) == 0));
    TB_ROLLED
    while (open != 0) {
        seeds |= open & (0 - open);
        open = tb_team_ballot((near != 0) & ((near & seeds) == 0) & !(seeds >> tb_team_lane() & 1));
    }
    return seeds;
}

/* Whether the lane's point represents its cluster. */
TB_TEAM_FN bool represents_cluster(uint32_t near, uint32_t seeds, tb_real gap, tb_real slop,
                                   bool is)
{
    const int32_t lane = tb_team_lane(), seed = near & seeds ? lowest_bit(near & seeds) : lane;
    const uint32_t cluster = tb_team_match(seed);
    tb_real deepest = gap;
    uint32_t others = cluster & ~(1u << lane);
    TB_ROLLED
    while (tb_team_any(others != 0)) {
        const tb_real other = tb_team_take_real(gap, others ? lowest_bit(others) : lane);
        deepest = tb_min(deepest, other);
        others &= others - 1;
    }
    const uint32_t deep = tb_team_ballot(is && gap <= deepest + slop);
    return is && lowest_bit(cluster & deep) == lane;
}

/* Leaves the representatives among the numbered contacts. */
TB_CALLED void warp_merge_points(warp_keep *keep, const warp_sight *sight)
{
    const int32_t lane = tb_team_lane(), count = keep->contacts;
    const bool is = lane < count;
    const int32_t slot = is ? keep->slot_of[lane] : 0, place = is ? keep->point_of[lane] : 0;
    const tb_contact_point *point = &sight->points[TB_MANIFOLD_POINTS * slot + place];
    const warp_candidate *pair = &keep->candidates[keep->pairs[slot]];
    const tb_vec3 none = tb_v3(0, 0, 0);
    warp_merge_point own = {none, none, TB_REAL_MAX, 0, -1};
    if (is) {
        own.position = tb_v3_lerp(point->point_a, point->point_b, TB_R(0.5));
        own.normal = point->normal;
        own.gap = point->gap;
        own.distance = pair->merge_distance;
        own.merges_as = pair->merges_as;
    }
    const uint32_t near = near_points(&own, count);
    if (!tb_team_any(near != 0)) return;
    const bool kept = represents_cluster(near, seeds_of(near, is), own.gap, keep->timing.slop, is);
    const uint32_t bits = tb_team_ballot(kept);
    const int32_t at = tb_count_bits(bits & ((1u << lane) - 1));
    tb_team_sync(); /* all have read their places */
    if (kept) {
        keep->slot_of[at] = (uint8_t)slot;
        keep->point_of[at] = (uint8_t)place;
    }
    if (TB_LEADER) keep->contacts = tb_count_bits(bits);
    tb_team_sync();
}

#endif
