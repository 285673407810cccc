/* A team of lanes finds the same points of pairs with meshes as the processor, to the byte and
 * for any number of lanes. */
#include "mesh_util.h"
#include "gpu/team_meshes.h"

#include <stdlib.h>

enum { PAIRS = 14, POINTS = PAIRS * MESH_POINTS, FIELD_SIDE = 9 };

/* Shapes of the pairs. */
typedef struct things {
    tb_arena arena;
    tb_random random;
    tb_triangle_mesh mug, ball, block;
    tb_hull hull;
    double heights[FIELD_SIDE * FIELD_SIDE];
    tb_height_field field;
} things;

static void make_things(things *t)
{
    memset(t, 0, sizeof *t);
    t->random = tb_random_stream(47, 11);
    soup s = {0};
    soup_mug(&s, 0.5, 0.08, 0.9, 24, 6);
    t->mug = soup_mesh(&s, &t->arena);
    memset(&s, 0, sizeof s);
    soup_sphere(&s, 0.5, 16);
    t->ball = soup_mesh(&s, &t->arena);
    memset(&s, 0, sizeof s);
    soup_box(&s, 0.4, 0.3, 0.2, 3);
    t->block = soup_mesh(&s, &t->arena);
    t->hull = random_hull(&t->arena, &t->random, 0.4);
    for (int i = 0; i < FIELD_SIDE * FIELD_SIDE; i++) {
        t->heights[i] = tb_random_between(&t->random, 0, 0.3);
        t->field.highest = fmax(t->field.highest, t->heights[i]);
    }
    t->field.rows = t->field.columns = FIELD_SIDE;
    t->field.heights = t->heights;
    t->field.half_x = t->field.half_y = 1;
    t->field.base = 0.2;
}

/* The k-th of all kinds of shapes, meshes first. */
static tb_posed_shape shape_number(const things *t, int k, tb_pose pose)
{
    const tb_triangle_mesh *const meshes[] = {&t->mug, &t->ball, &t->block};
    if (k < 3) return shape_of_mesh(meshes[k], pose);
    if (k == 3)
        return (tb_posed_shape){.type = TB_SHAPE_HEIGHT_FIELD, .field = &t->field, .pose = pose};
    if (k == 4) return shape_of(TB_SHAPE_PLANE, 0, 0, 0, pose);
    return convex_shape(convex_types[k - 5], 0.5, &t->hull, pose);
}

/* Pairs of all kinds: far apart, touching, deep; and flat ones with many points of one normal. */
static void make_pairs(things *t, tb_posed_shape shapes[2 * PAIRS])
{
    for (int i = 0; i < PAIRS; i++) {
        const int mesh = (int)(tb_random_u32(&t->random) % (4));
        const int other = (int)(tb_random_u32(&t->random) % (5 + CONVEX_TYPES));
        const int flip = (int)(tb_random_u32(&t->random) % (2));
        const double reach = tb_random_between(&t->random, 0.05, 0.7);
        shapes[2 * i + flip] = shape_number(t, mesh, pose_random(&t->random, 0.1));
        shapes[2 * i + 1 - flip] = shape_number(t, other, pose_random(&t->random, reach));
    }
    const double turn = tb_random_between(&t->random, 0, 1);
    tb_pose standing = pose_at(0.02, 0.01, 0.1995);
    standing.rotation = tb_q_matrix(tb_q(TB_R(cos(turn)), 0, 0, TB_R(sin(turn))));
    shapes[0] = shape_of(TB_SHAPE_PLANE, 0, 0, 0, pose_at(0, 0, 0.2));
    shapes[1] = shape_of_mesh(&t->mug, standing);
    shapes[2] = shape_of_mesh(&t->mug, standing);
    shapes[3] = shape_of_mesh(&t->block, pose_at(0, 0, 0));
}

/* The processor's points, one pair after another. Returns their number. */
static int32_t expected_points(things *t, const tb_posed_shape *shapes, tb_real margin,
                               tb_contact_point *points, int32_t *counts, uint32_t *flags)
{
    int32_t total = 0;
    *flags = 0;
    for (int i = 0; i < PAIRS; i++) {
        counts[i] = tb_collide_mesh(&shapes[2 * i], &shapes[2 * i + 1], margin, points + total,
                                    MESH_POINTS, &t->arena, flags);
        ck_assert_int_ge(counts[i], 0);
        ck_assert_int_le(counts[i], MESH_POINTS);
        total += counts[i];
    }
    return total;
}

static void compare(const team_meshes_call *call, const tb_contact_point *points,
                    const int32_t *counts, int32_t total, uint32_t flags)
{
    for (int i = 0; i < PAIRS; i++)
        ck_assert_msg(call->counts[i] == counts[i],
                      "%d lanes: pair %d of types %d and %d: %d, not %d", call->lanes, i,
                      (int)call->shapes[2 * i].type, (int)call->shapes[2 * i + 1].type,
                      call->counts[i], counts[i]);
    ck_assert_mem_eq(call->points, points, (size_t)total * sizeof *points);
    ck_assert_uint_eq(call->flags, flags);
}

START_TEST(lanes_find_the_points_of_the_processor)
{
    static things t;
    static tb_contact_point here[POINTS], there[POINTS];
    tb_posed_shape shapes[2 * PAIRS];
    int32_t counts[PAIRS], counted[PAIRS], most = 0;
    make_things(&t);
    team_meshes_call call = {.shapes = shapes,
                             .pairs = PAIRS,
                             .margin = TB_R(0.01),
                             .bytes = 64 << 20,
                             .points = there,
                             .capacity = POINTS,
                             .counts = counted};
    call.memory = aligned_alloc(64, call.bytes);
    ck_assert_ptr_nonnull(call.memory);
    for (int round = 0; round < 40; round++) {
        static const int32_t LANES[] = {1, 2, 1, 1, 4, 1, 1, 2, 1, 1};
        uint32_t flags;
        make_pairs(&t, shapes);
        const int32_t total = expected_points(&t, shapes, call.margin, here, counts, &flags);
        call.lanes = round == 5 ? 32 : round == 35 ? 8 : LANES[round % 10]; /* many are slow */
        TEST_OK(team_meshes(&call), NULL);
        compare(&call, here, counts, total, flags);
        most = total > most ? total : most;
    }
    ck_assert_int_gt(most, 50); /* or nothing was shown */
    free(call.memory);
    tb_arena_destroy(&t.arena);
}
END_TEST

/* Memory that is asked for bit by bit, and the scratch of deep pairs when there is hardly any. */
START_TEST(too_little_memory_is_told_until_it_suffices)
{
    static things t;
    static tb_contact_point here[POINTS], there[POINTS];
    tb_posed_shape shapes[2 * PAIRS];
    int32_t counts[PAIRS], counted[PAIRS];
    make_things(&t);
    for (int32_t lanes = 1; lanes <= 2; lanes++) {
        uint32_t flags;
        int refusals = 0;
        make_pairs(&t, shapes);
        const int32_t total = expected_points(&t, shapes, TB_R(0.01), here, counts, &flags);
        team_meshes_call call = {.shapes = shapes,
                                 .pairs = PAIRS,
                                 .lanes = lanes,
                                 .margin = TB_R(0.01),
                                 .bytes = 64,
                                 .points = there,
                                 .capacity = POINTS,
                                 .counts = counted};
        for (;;) {
            call.memory = aligned_alloc(64, (call.bytes + 63) / 64 * 64);
            ck_assert_ptr_nonnull(call.memory);
            const tb_status status = team_meshes(&call);
            free(call.memory);
            if (status == TB_OK) break;
            TEST_STATUS(status, TB_RESOURCE_EXHAUSTED, NULL);
            ck_assert_uint_gt(call.wanted, call.bytes);
            ck_assert_int_lt(++refusals, 100);
            call.bytes = call.wanted;
        }
        ck_assert_int_gt(refusals, 5);
        compare(&call, here, counts, total, flags);
    }
    tb_arena_destroy(&t.arena);
}
END_TEST

TEST_MAIN(lanes_find_the_points_of_the_processor, too_little_memory_is_told_until_it_suffices)
