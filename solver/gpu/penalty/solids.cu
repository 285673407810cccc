/* Worlds of solids by the volume law on a GPU: all steps of a call in one cooperative launch.
 *
 * A team of blocks takes a world through all its steps, then another. An evaluation goes through
 * parts with a barrier of the team between them: bodies move with their shapes; the list of near pairs is made
 * again where a box has left its grown one; pairs become fragments, fragments are clipped, parts
 * push; bodies add up their contacts and end the stage. Where all solids are convex, a lane takes a pair
 * from its boxes to its push, and an evaluation has two barriers.
 *
 * Double only; the float build of this file is empty. */
#ifndef TB_SINGLE
#include "gpu/penalty/solids.h"
#include "gpu/qp/grid.h"

/* A lane of the team that steps a world. */
typedef struct solids_lane {
    const tb_gpu_solids *g;
    tb_solids_memory memory;
    tb_solids_lane own;
    int32_t lane, lanes, world;
    meeting *place; /* NULL: the block is alone */
    int32_t turn, step;
    bool last; /* stage of the step */
} solids_lane;

enum { PAIRS_NEEDED, FRAGMENTS_NEEDED, VERTICES_NEEDED, FACES_NEEDED };

TB_CARD void meet_team(const solids_lane *t)
{
    if (t->place != NULL)
        meet(t->place, t->g->blocks);
    else
        __syncthreads();
}

TB_CARD int32_t read_count(const int32_t *count)
{
    return *(const volatile int32_t *)count;
}

/* ---- bodies move ---- */

TB_CARD void move_body(const solids_lane *t, int32_t stage, int32_t i)
{
    const tb_gpu_solids *g = t->g;
    const tb_solids_scene *s = &g->scene;
    const tb_solids_memory *m = &t->memory;
    const size_t body = (size_t)t->world * (size_t)s->number_of_bodies + (size_t)i;
    const size_t apart = (size_t)g->worlds * (size_t)s->number_of_bodies * TB_VOLUME_NUMBERS;
    double *point = g->point + TB_VOLUME_NUMBERS * body;
    tb_volume_point(&g->method, stage, g->y + TB_VOLUME_NUMBERS * body,
                    g->slopes + TB_VOLUME_NUMBERS * body, apart, point);
    if (!tb_volume_finite(point, TB_VOLUME_WORK)) atomicMin(&g->diverged[t->world], t->step);
    tb_law_move(&s->bodies[i], point, point + TB_VOLUME_VELOCITY, &m->body_poses[i],
                &m->motions[i]);
    bool within = true;
    for (int32_t k = s->first_shapes[i]; k < s->first_shapes[i + 1]; k++) {
        const int32_t shape = s->body_shapes[k];
        within = tb_solids_move_shape(&s->shapes[shape], &m->body_poses[i], &m->poses[shape],
                                      m->boxes + 6 * (size_t)shape,
                                      m->near_boxes + 6 * (size_t)shape) &&
                 within;
    }
    if (!within) atomicExch(&m->counts[TB_SOLIDS_OLD], 1);
}

/* ---- near pairs ---- */

/* The sum of the numbers of the lanes before this one in its warp; *all: of the whole warp. */
TB_CARD int32_t sum_before(int32_t own, int32_t *all)
{
    int32_t up_to = own;
    for (int step = 1; step < WARP; step *= 2) {
        const int32_t before = __shfl_up_sync(0xffffffffu, up_to, step);
        if (lane_of() >= step) up_to += before;
    }
    *all = __shfl_sync(0xffffffffu, up_to, WARP - 1);
    return up_to - own;
}

/* Offsets of the counts of a list, and their sum behind them; by one warp. */
TB_CARD void sum_counts(int32_t *counts, int32_t number)
{
    int32_t sum = 0, all;
    for (int32_t first = 0; first < number; first += WARP) {
        const int32_t i = first + lane_of();
        const int32_t before = sum_before(i < number ? counts[i] : 0, &all);
        if (i < number) counts[i] = sum + before;
        sum += all;
    }
    if (lane_of() == 0) counts[number] = sum;
}

/* Whether a warp's lane finds something, and how many lanes before it do. */
TB_CARD int32_t found_before(bool found, int32_t *all)
{
    const unsigned bits = __ballot_sync(0xffffffffu, found);
    *all = __popc(bits);
    return __popc(bits & ((1u << lane_of()) - 1));
}

/* Pairs of a shape with shapes of higher numbers, by one warp; they are written if `to` is not NULL. */
TB_CARD int32_t pairs_of_shape(const solids_lane *t, int32_t a, tb_solids_pair *to)
{
    const tb_solids_scene *s = &t->g->scene;
    const double *boxes = t->memory.near_boxes;
    int32_t count = 0;
    for (int32_t first = a + 1; first < s->number_of_shapes; first += WARP) {
        const int32_t b = first + lane_of();
        const bool near =
            b < s->number_of_shapes && tb_solids_collide(&s->shapes[a], &s->shapes[b]) &&
            tb_solids_boxes_meet(boxes + 6 * (size_t)a, boxes + 6 * (size_t)b);
        int32_t all;
        const int32_t before = found_before(near, &all);
        if (near && to != NULL) {
            tb_solids_pair *pair = &to[count + before];
            pair->a = a, pair->b = b;
            pair->first = pair->fragments = pair->parts = 0;
        }
        count += all;
    }
    return count;
}

/* Pairs of a body, ascending, by one warp. */
TB_CARD int32_t pairs_of_body(const solids_lane *t, int32_t body, int32_t pairs, int32_t *to)
{
    const tb_solids_scene *s = &t->g->scene;
    int32_t count = 0;
    for (int32_t first = 0; first < pairs; first += WARP) {
        const int32_t i = first + lane_of();
        const tb_solids_pair *pair = &t->memory.pairs[i < pairs ? i : 0];
        const bool own = i < pairs && (s->shapes[pair->a].body == body ||
                                       s->shapes[pair->b].body == body);
        int32_t all;
        const int32_t before = found_before(own, &all);
        if (own && to != NULL) to[count + before] = i;
        count += all;
    }
    return count;
}

/* Makes the list of near pairs. False if there is no room for it. */
TB_CARD bool make_list(const solids_lane *t)
{
    const tb_solids_scene *s = &t->g->scene;
    const tb_solids_memory *m = &t->memory;
    const int32_t warp = t->lane / WARP, warps = t->lanes / WARP;
    for (int32_t i = t->lane; i < s->number_of_shapes; i += t->lanes)
        for (int k = 0; k < 3; k++) {
            m->near_boxes[6 * (size_t)i + k] = m->boxes[6 * (size_t)i + k] - s->margin;
            m->near_boxes[6 * (size_t)i + 3 + k] = m->boxes[6 * (size_t)i + 3 + k] + s->margin;
        }
    meet_team(t);
    if (t->lane == 0) m->counts[TB_SOLIDS_OLD] = 0;
    for (int32_t a = warp; a < s->number_of_shapes; a += warps) {
        const int32_t count = pairs_of_shape(t, a, NULL);
        if (lane_of() == 0) m->rows[a] = count;
    }
    meet_team(t);
    if (warp == 0) sum_counts(m->rows, s->number_of_shapes);
    meet_team(t);
    const int32_t pairs = read_count(&m->rows[s->number_of_shapes]);
    if (pairs > t->g->room.pairs) {
        if (t->lane == 0) atomicMax(&t->g->needed[PAIRS_NEEDED], pairs);
        return false;
    }
    for (int32_t a = warp; a < s->number_of_shapes; a += warps)
        pairs_of_shape(t, a, m->pairs + m->rows[a]);
    meet_team(t);
    for (int32_t i = warp; i < s->number_of_bodies; i += warps) {
        const int32_t count = pairs_of_body(t, i, pairs, NULL);
        if (lane_of() == 0) m->body_rows[i] = count;
    }
    meet_team(t);
    if (warp == 0) sum_counts(m->body_rows, s->number_of_bodies);
    meet_team(t);
    for (int32_t i = warp; i < s->number_of_bodies; i += warps)
        pairs_of_body(t, i, pairs, m->body_pairs + m->body_rows[i]);
    meet_team(t);
    return true;
}

/* ---- pairs ---- */

TB_CARD const tb_law_motion *motion_of_shape(const solids_lane *t, int32_t shape)
{
    const int32_t body = t->g->scene.shapes[shape].body;
    return &t->memory.motions[body >= 0 ? body : t->g->scene.number_of_bodies];
}

TB_CARD tb_solids_meeting meet_pair(const solids_lane *t, const tb_solids_pair *pair)
{
    const tb_solids_scene *s = &t->g->scene;
    return tb_meet_solids(&s->solids[s->shapes[pair->a].solid], &t->memory.poses[pair->a],
                          &s->solids[s->shapes[pair->b].solid], &t->memory.poses[pair->b]);
}

TB_CARD tb_volume_constants constants_of(const solids_lane *t, const tb_solids_pair *pair)
{
    const tb_solids_shape *shapes = t->g->scene.shapes;
    return tb_volume_constants_of_pair(&shapes[pair->a].constants, &shapes[pair->b].constants);
}

TB_CARD void press(const solids_lane *t, const tb_solids_pair *pair, const tb_volume_constants *c,
                   const tb_overlap_part *part, const tb_contact_push *given,
                   tb_solids_contact *contact)
{
    if (!tb_solids_press(c, part, given, motion_of_shape(t, pair->a), motion_of_shape(t, pair->b), contact))
        t->g->degenerate[t->world] = 1;
}

TB_CARD bool is_round(const solids_lane *t, const tb_solids_pair *pair)
{
    const tb_solids_shape *a = &t->g->scene.shapes[pair->a], *b = &t->g->scene.shapes[pair->b];
    return tb_law_is_round(a->radius, a->half_space, b->radius, b->half_space);
}

/* A contact in closed form. */
TB_CARD int32_t push_round(const solids_lane *t, const tb_solids_pair *pair,
                           tb_solids_contact *contact)
{
    const tb_solids_shape *shapes = t->g->scene.shapes;
    const tb_law_round a = tb_solids_round(&shapes[pair->a], &t->memory.poses[pair->a]);
    const tb_law_round b = tb_solids_round(&shapes[pair->b], &t->memory.poses[pair->b]);
    const tb_volume_constants c = constants_of(t, pair);
    tb_overlap_part part;
    tb_contact_push push;
    bool given;
    const tb_ball_contact way = tb_law_round_contact(&c, &a, &b, &part, &push, &given);
    if (way == TB_BALLS_EQUAL) t->g->degenerate[t->world] = 1;
    if (way != TB_BALLS_TOUCH) return 0;
    press(t, pair, &c, &part, given ? &push : NULL, contact);
    return 1;
}

TB_CARD void count_contacts(const solids_lane *t, int32_t parts)
{
    if (t->last && parts > 0)
        atomicAdd(&t->g->step_contacts[(int64_t)t->world * t->g->steps + t->step], parts);
}

/* Whether a clip and its fragment had room; the host learns what they need. */
TB_CARD void check_room(const solids_lane *t, int32_t vertices)
{
    const tb_gpu_solids *g = t->g;
    if (t->own.clip.overflow) atomicMax(&g->needed[FACES_NEEDED], 2 * g->room.faces);
    if (vertices > g->room.vertices) atomicMax(&g->needed[VERTICES_NEEDED], vertices);
}

/* A pair of convex shapes from its boxes to its push, by one lane. */
TB_CARD void push_convex(solids_lane *t, int32_t i)
{
    tb_solids_memory *m = &t->memory;
    tb_solids_pair *pair = &m->pairs[i];
    int32_t parts = 0;
    pair->first = i;
    if (tb_solids_boxes_meet(m->boxes + 6 * (size_t)pair->a, m->boxes + 6 * (size_t)pair->b)) {
        if (is_round(t, pair)) {
            parts = push_round(t, pair, &m->contacts[i]);
        } else {
            const tb_solids_meeting pieces = meet_pair(t, pair);
            tb_fragment g;
            if (tb_solids_near_pieces(&pieces, 0) > 0) {
                check_room(t, tb_solids_fragment(&pieces, pieces.moved->pieces,
                                                    pieces.fixed->pieces, &t->g->room, &t->own.clip,
                                                    &g, t->own.vertices, 0, NULL, 0, false));
                const tb_volume_constants c = constants_of(t, pair);
                bool degenerate = false;
                parts = tb_solids_press_parts(&c, &g, g.volume > 0, NULL, t->own.vertices,
                                              motion_of_shape(t, pair->a),
                                              motion_of_shape(t, pair->b), &m->contacts[i],
                                              &degenerate);
                if (degenerate) t->g->degenerate[t->world] = 1;
            }
        }
    }
    pair->parts = parts;
    count_contacts(t, parts);
}

/* Writes the pairs of pieces with one moved piece. */
TB_CARD void write_jobs(const tb_solids_meeting *pieces, int32_t pair, int32_t moved,
                        tb_solids_job *to)
{
    double lower[3], upper[3];
    const tb_piece *piece = &pieces->moved->pieces[moved];
    tb_law_turn_box(&pieces->relative, piece->lower, piece->upper, lower, upper);
    for (int32_t k = 0; k < pieces->fixed->number_of_pieces; k++) {
        const tb_piece *fixed = &pieces->fixed->pieces[k];
        if (!tb_corners_meet(lower, upper, fixed->lower, fixed->upper)) continue;
        to->pair = pair, to->moved = moved, to->fixed = k;
        to++;
    }
}

/* Room for a pair's fragments, or its contact, for a whole warp; -1 where there is none: the count says so to
 * all lanes behind the next barrier. */
TB_CARD int32_t take_fragments(const solids_lane *t, int32_t number)
{
    int32_t first = 0;
    if (lane_of() == 0) first = atomicAdd(&t->memory.counts[t->turn], number);
    first = __shfl_sync(0xffffffffu, first, 0);
    return number <= t->g->room.fragments && first <= t->g->room.fragments - number ? first : -1;
}

/* A pair in closed form: its contact takes the place of a fragment. */
TB_CARD void place_round(const solids_lane *t, tb_solids_pair *pair)
{
    const int32_t first = take_fragments(t, 1);
    if (first < 0 || lane_of() > 0) return;
    pair->first = first;
    pair->parts = push_round(t, pair, &t->memory.contacts[first]);
    t->memory.jobs[first].pair = -1;
    count_contacts(t, pair->parts);
}

/* Lists the pairs of pieces of a pair of shapes whose boxes meet, in their order; by one warp, a lane a moved
 * piece. */
TB_CARD void list_fragments(const solids_lane *t, int32_t i)
{
    const tb_solids_memory *m = &t->memory;
    tb_solids_pair *pair = &m->pairs[i];
    if (lane_of() == 0) pair->fragments = pair->parts = 0;
    __syncwarp();
    if (!tb_solids_boxes_meet(m->boxes + 6 * (size_t)pair->a, m->boxes + 6 * (size_t)pair->b))
        return;
    if (is_round(t, pair)) {
        place_round(t, pair);
        return;
    }
    const tb_solids_meeting pieces = meet_pair(t, pair);
    const int32_t number = pieces.moved->number_of_pieces;
    int32_t count = 0, all;
    for (int32_t moved = lane_of(); moved < number; moved += WARP)
        count += tb_solids_near_pieces(&pieces, moved);
    (void)sum_before(count, &all);
    if (all == 0) return;
    int32_t first = take_fragments(t, all);
    if (first < 0) return;
    if (lane_of() == 0) pair->first = first, pair->fragments = all;
    for (int32_t begin = 0; begin < number; begin += WARP) {
        const int32_t moved = begin + lane_of();
        const int32_t own = moved < number ? tb_solids_near_pieces(&pieces, moved) : 0;
        const int32_t before = sum_before(own, &all);
        if (own > 0) write_jobs(&pieces, i, moved, m->jobs + first + before);
        first += all;
    }
}

TB_CARD void clip_fragment(solids_lane *t, int32_t i)
{
    const tb_solids_memory *m = &t->memory;
    const tb_solids_room *room = &t->g->room;
    const tb_solids_job *job = &m->jobs[i];
    if (job->pair < 0) return;
    const tb_solids_meeting pieces = meet_pair(t, &m->pairs[job->pair]);
    check_room(t, tb_solids_fragment(&pieces, &pieces.moved->pieces[job->moved],
                                        &pieces.fixed->pieces[job->fixed], room, &t->own.clip,
                                        &m->fragments[i], m->vertices, i * room->vertices,
                                        m->seams, i * room->seams, t->g->scene.seams));
}

/* The contacts of a pair whose fragments are clipped. */
TB_CARD void push_pair(const solids_lane *t, int32_t i)
{
    const tb_solids_memory *m = &t->memory;
    tb_solids_pair *pair = &m->pairs[i];
    int32_t kept = 0;
    if (pair->fragments == 0) return;
    tb_fragment *fragments = m->fragments + pair->first;
    for (int32_t k = 0; k < pair->fragments; k++)
        if (fragments[k].volume > 0) fragments[kept++] = fragments[k];
    const tb_volume_constants c = constants_of(t, pair);
    bool degenerate = false;
    pair->parts = tb_solids_press_parts(&c, fragments, kept, m->seams, m->vertices,
                                        motion_of_shape(t, pair->a), motion_of_shape(t, pair->b),
                                        m->contacts + pair->first, &degenerate);
    if (degenerate) t->g->degenerate[t->world] = 1;
    count_contacts(t, pair->parts);
}

/* All contacts. False if there is no room for them. */
TB_CARD bool push_all(solids_lane *t)
{
    const tb_solids_memory *m = &t->memory;
    const int32_t pairs = m->rows[t->g->scene.number_of_shapes];
    if (t->g->scene.single) {
        for (int32_t i = t->lane; i < pairs; i += t->lanes) push_convex(t, i);
        meet_team(t);
        return true;
    }
    for (int32_t i = t->lane / WARP; i < pairs; i += t->lanes / WARP) list_fragments(t, i);
    meet_team(t);
    const int32_t fragments = read_count(&m->counts[t->turn]);
    if (fragments > t->g->room.fragments) {
        if (t->lane == 0) atomicMax(&t->g->needed[FRAGMENTS_NEEDED], fragments);
        return false;
    }
    for (int32_t i = t->lane; i < fragments; i += t->lanes) clip_fragment(t, i);
    meet_team(t);
    for (int32_t i = t->lane; i < pairs; i += t->lanes) push_pair(t, i);
    meet_team(t);
    return true;
}

/* ---- bodies end a stage ---- */

TB_CARD void add_pair(const solids_lane *t, int32_t body, const tb_solids_pair *pair,
                      tb_volume_sum *sum)
{
    const tb_solids_shape *shapes = t->g->scene.shapes;
    const bool of_a = shapes[pair->a].body == body;
    const bool counted = of_a || shapes[pair->a].body < 0;
    for (int32_t k = 0; k < pair->parts; k++)
        tb_solids_add(&t->memory.contacts[pair->first + k], of_a, counted,
                      t->memory.motions[body].com, sum);
}

/* The slope of a body; after the last stage its numbers at the end of the step. */
TB_CARD void end_stage(const solids_lane *t, int32_t stage, int32_t i)
{
    enum { AT_ONCE = 8 }; /* loads that wait for each other in no order */
    const tb_gpu_solids *g = t->g;
    const tb_solids_scene *s = &g->scene;
    const tb_solids_memory *m = &t->memory;
    const size_t body = (size_t)t->world * (size_t)s->number_of_bodies + (size_t)i;
    const size_t apart = (size_t)g->worlds * (size_t)s->number_of_bodies * TB_VOLUME_NUMBERS;
    double *slopes = g->slopes + TB_VOLUME_NUMBERS * body;
    tb_volume_sum sum;
    memset(&sum, 0, sizeof sum);
    const int32_t end = m->body_rows[i + 1];
    for (int32_t first = m->body_rows[i]; first < end; first += AT_ONCE) {
        int32_t numbers[AT_ONCE], parts[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) numbers[k] = m->body_pairs[first + k < end ? first + k : first];
        for (int k = 0; k < AT_ONCE; k++) parts[k] = m->pairs[numbers[k]].parts;
        for (int k = 0; k < AT_ONCE && first + k < end; k++)
            if (parts[k] > 0) add_pair(t, i, &m->pairs[numbers[k]], &sum);
    }
    tb_volume_slope(&s->bodies[i], s->gravity, &m->body_poses[i].rotation, m->motions[i].com,
                    g->point + TB_VOLUME_NUMBERS * body, g->forces + TB_VOLUME_FORCES * body, &sum,
                    slopes + (size_t)stage * apart);
    if (!t->last) return;
    if (sum.deepest > g->deepest[body]) g->deepest[body] = sum.deepest;
    if (!tb_volume_advance(&g->method, &s->bodies[i], g->y + TB_VOLUME_NUMBERS * body, slopes,
                           apart))
        atomicMin(&g->diverged[t->world], t->step);
}

/* ---- a world ---- */

/* One evaluation of all forces. False if the world's motion has ended, or if there is no room for it. */
TB_CARD bool evaluate(solids_lane *t, int32_t stage)
{
    const tb_gpu_solids *g = t->g;
    const int32_t bodies = g->scene.number_of_bodies;
    t->turn = 1 - t->turn;
    t->last = stage + 1 == g->method.stages;
    for (int32_t i = t->lane; i < bodies; i += t->lanes) move_body(t, stage, i);
    if (t->lane == 0) t->memory.counts[1 - t->turn] = 0; /* of the next evaluation */
    meet_team(t);
    if (read_count(&g->diverged[t->world]) <= t->step) return false;
    if (read_count(&t->memory.counts[TB_SOLIDS_OLD]) && !make_list(t)) return false;
    if (!push_all(t)) return false;
    for (int32_t i = t->lane; i < bodies; i += t->lanes) end_stage(t, stage, i);
    return true;
}

/* Shapes that nothing moves; the list of near pairs is to be made. */
TB_CARD void begin_world(solids_lane *t)
{
    const tb_solids_scene *s = &t->g->scene;
    const tb_solids_memory *m = &t->memory;
    for (int32_t i = t->lane; i < s->number_of_shapes; i += t->lanes) {
        for (int k = 0; k < 6; k++) m->near_boxes[6 * (size_t)i + k] = 0;
        if (s->shapes[i].body >= 0) continue;
        m->poses[i] = s->shapes[i].pose;
        for (int k = 0; k < 6; k++) m->boxes[6 * (size_t)i + k] = s->shapes[i].box[k];
    }
    if (t->lane == 0) {
        memset(&m->motions[s->number_of_bodies], 0, sizeof *m->motions);
        m->counts[0] = m->counts[1] = 0;
        m->counts[TB_SOLIDS_OLD] = 1;
    }
    t->turn = 0;
    meet_team(t);
}

TB_CARD void step_world(solids_lane *t)
{
    begin_world(t);
    for (t->step = 0; t->step < t->g->steps; t->step++)
        for (int32_t stage = 0; stage < t->g->method.stages; stage++)
            if (!evaluate(t, stage)) return;
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOLIDS_THREADS)
    tb_gpu_solids_steps(const __grid_constant__ tb_gpu_solids g)
{
    const int32_t team = (int32_t)blockIdx.x / g.blocks, block = (int32_t)blockIdx.x % g.blocks;
    solids_lane t;
    t.g = &g;
    t.lane = block * (int32_t)blockDim.x + (int32_t)threadIdx.x;
    t.lanes = g.blocks * (int32_t)blockDim.x;
    t.place = g.blocks > 1 ? (meeting *)(void *)(g.meetings + TB_GPU_SOLIDS_MEETING * team) : NULL;
    char *own = g.lane_memory + ((size_t)team * (size_t)t.lanes + (size_t)t.lane) * g.lane_bytes;
    tb_solids_place_lane(&g.room, own, &t.own);
    tb_solids_place(&g.scene, &g.room, g.team_memory + (size_t)team * g.team_bytes, &t.memory);
    for (t.world = team; t.world < g.worlds; t.world += g.teams) {
        meet_team(&t);
        step_world(&t);
    }
}

extern "C" cudaError_t tb_gpu_solids_resident(int threads, int *blocks)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, (const void *)tb_gpu_solids_steps, threads, 0);
}

extern "C" cudaError_t tb_gpu_start_solids(const tb_gpu_solids *solids, cudaStream_t stream)
{
    tb_gpu_solids g = *solids;
    void *arguments[] = {&g};
    return cudaLaunchCooperativeKernel((const void *)tb_gpu_solids_steps,
                                       dim3((unsigned)(g.teams * g.blocks)),
                                       dim3((unsigned)g.threads), arguments, 0, stream);
}
#endif
