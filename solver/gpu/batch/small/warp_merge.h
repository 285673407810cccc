/* Merging of redundant points by a warp: the clusters and representatives of step/stages/merge.h, a lane a
 * point. Whether two points are near is asked for all pairs at once; seeds and representatives then follow
 * from bits. */
#ifndef TB_GPU_WARP_MERGE_H
#define TB_GPU_WARP_MERGE_H

#include "gpu/batch/small/warp_detect.h"

/* Bits of another lane. */
TB_TEAM_FN uint32_t take_bits(uint32_t own, int32_t from)
{
    tb_team_pass(&own, sizeof own, from);
    return own;
}

TB_TEAM_FN tb_vec3 take_vector(tb_vec3 own, int32_t from)
{
    return tb_v3(tb_team_take_real(own.x, from), tb_team_take_real(own.y, from),
                 tb_team_take_real(own.z, from));
}

/* Points before the lane's own that it is near to. merges_as: as in warp_candidate, -1 without a point. */
TB_TEAM_FN uint32_t near_points(tb_vec3 position, tb_vec3 normal, int32_t merges_as,
                                tb_real distance, int32_t count)
{
    uint32_t bits = 0;
    TB_ROLLED
    for (int32_t i = 0; i < count; i++) {
        const bool same = (int32_t)take_bits((uint32_t)merges_as, i) == merges_as;
        const bool near = tb_merge_near(position, normal, take_vector(position, i),
                                        take_vector(normal, i), distance);
        if (near & same & (i < tb_team_lane())) bits |= 1u << i;
    }
    return merges_as >= 0 ? bits : 0;
}

/* Points that are seeds: near to no seed before them. */
TB_TEAM_FN uint32_t seeds_of(uint32_t near, bool is)
{
    uint32_t seeds = tb_team_ballot(is && near == 0);
    TB_ROLLED
    for (uint32_t left = tb_team_ballot(near != 0); left != 0; left &= left - 1) {
        const int32_t i = lowest_bit(left);
        if ((take_bits(near, i) & seeds) == 0) seeds |= 1u << i;
    }
    return seeds;
}

/* Whether the lane's point represents its cluster. */
TB_TEAM_FN bool represents_cluster(uint32_t near, uint32_t seeds, tb_real gap, tb_real slop,
                                   bool is)
{
    const int32_t lane = tb_team_lane(), seed = near & seeds ? lowest_bit(near & seeds) : lane;
    tb_real deepest = tb_min(gap, tb_team_take_real(gap, seed));
    uint32_t cluster = 1u << seed;
    TB_ROLLED
    for (uint32_t left = tb_team_ballot(is && seed != lane); left != 0; left &= left - 1) {
        const int32_t i = lowest_bit(left);
        const tb_real other = tb_team_take_real(gap, i);
        const bool same = (int32_t)take_bits((uint32_t)seed, i) == seed;
        deepest = same ? tb_min(deepest, other) : deepest;
        cluster |= same ? 1u << i : 0;
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
    const tb_vec3 position = is ? tb_v3_lerp(point->point_a, point->point_b, TB_R(0.5)) : none;
    const tb_real gap = is ? point->gap : TB_REAL_MAX;
    const uint32_t near =
        near_points(position, is ? point->normal : none, is ? pair->merges_as : -1,
                    is ? pair->merge_distance : TB_R(0), count);
    if (!tb_team_any(near != 0)) return;
    const bool kept = represents_cluster(near, seeds_of(near, is), gap, keep->timing.slop, is);
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
