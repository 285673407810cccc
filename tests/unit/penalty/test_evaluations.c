/* Evaluations of the volume law that a state keeps for viewers: their contacts, the shares of triangles,
 * poses and boxes; the bound of memory; and no influence on results. */
#include <math.h>
#include <string.h>

#include "scene_util.h"
#include "tribo.h"

static tb_error error;

typedef struct played {
    tb_model *model;
    tb_state *state;
    tb_stepper *stepper;
} played;

static played play_begin(const char *scene, const char *integrator)
{
    played p = {0};
    p.model = named_model(scene);
    tb_step_options options = tb_step_defaults();
    options.scheme = TB_SCHEME_VOLUME;
    options.solve.solver = integrator;
    TEST_OK(tb_stepper_create(&options, &p.stepper, &error), &error);
    TEST_OK(tb_state_create(p.model, &p.state, &error), &error);
    return p;
}

static void play(played *p, int32_t steps)
{
    tb_certificate c;
    TEST_OK(tb_step(p->stepper, p->state, steps, &c, &error), &error);
}

static void play_end(played *p)
{
    tb_state_destroy(p->state);
    tb_stepper_destroy(p->stepper);
    tb_model_destroy(p->model);
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* The triangles' forces add up to each contact's normal force, and each triangle pushes along its own
 * normal, into A's side; returns the triangles. */
static int32_t check_shares(const tb_evaluations *all)
{
    for (int32_t i = 0; i < all->number_of_evaluations; i++) {
        const tb_evaluation *e = &all->evaluations[i];
        const tb_evaluation_contact *contacts = all->contacts + e->first_contact;
        double sums[256][3] = {{0}};
        ck_assert_int_le(e->number_of_contacts, 256);
        for (int32_t t = 0; t < e->number_of_triangles; t++) {
            const tb_evaluation_triangle *x = &all->triangles[e->first_triangle + t];
            double u[3], v[3];
            ck_assert(x->contact >= 0 && x->contact < e->number_of_contacts);
            for (int k = 0; k < 3; k++) {
                sums[x->contact][k] += x->force[k];
                u[k] = x->vertices[1][k] - x->vertices[0][k];
                v[k] = x->vertices[2][k] - x->vertices[0][k];
            }
            const double area[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                                    u[0] * v[1] - u[1] * v[0]};
            /* the push on B is against the outward normal of B's triangle */
            ck_assert_double_le(dot(area, x->force), 0);
        }
        for (int32_t c = 0; c < e->number_of_contacts; c++) {
            const double along = dot(contacts[c].force, contacts[c].normal);
            for (int k = 0; k < 3; k++)
                ck_assert_double_eq_tol(sums[c][k], along * contacts[c].normal[k],
                                        1e-9 * fmax(1, fabs(along)));
        }
    }
    return all->number_of_evaluations > 0 ? all->evaluations[0].number_of_triangles : 0;
}

START_TEST(triangles_share_the_normal_force_of_their_contact)
{
    /* a non-convex pair, solids on a plane, solids among each other */
    static const struct {
        const char *scene;
        int steps; /* to a contact and beyond it */
    } CASES[] = {{"fork_ring", 300}, {"cube_drop", 1500}, {"prisms_27", 700}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        played p = play_begin(CASES[i].scene, "rkfix4");
        int32_t triangles = 0;
        TEST_OK(tb_state_keep_evaluations(p.state, 1 << 20, &error), &error);
        for (int step = 0; step < CASES[i].steps; step++) {
            play(&p, 1);
            const tb_evaluations all = tb_state_evaluations(p.state);
            ck_assert_int_eq(all.number_of_evaluations, tb_state_certificate(p.state)->iterations);
            ck_assert_int_eq(all.left_out, 0);
            triangles += check_shares(&all);
        }
        ck_assert_msg(triangles > 0, "%s: no triangle", CASES[i].scene);
        play_end(&p);
    }
}
END_TEST

START_TEST(the_last_evaluation_is_that_of_the_contacts)
{
    played p = play_begin("fork_ring", "rkfix4");
    TEST_OK(tb_state_keep_evaluations(p.state, 1 << 20, &error), &error);
    play(&p, 200);
    const tb_evaluations all = tb_state_evaluations(p.state);
    const tb_evaluation *last = &all.evaluations[all.number_of_evaluations - 1];
    ck_assert_int_gt(last->number_of_contacts, 0);
    ck_assert_int_eq(last->number_of_contacts, tb_state_number_of_contacts(p.state));
    for (int32_t i = 0; i < last->number_of_contacts; i++) {
        const tb_evaluation_contact *c = &all.contacts[last->first_contact + i];
        tb_contact_info info;
        TEST_OK(tb_state_contact(p.state, i, &info), NULL);
        ck_assert_int_eq(c->shape_a, info.shape_a);
        ck_assert_int_eq(c->shape_b, info.shape_b);
        ck_assert_double_eq(c->depth, -info.gap);
        ck_assert_mem_eq(c->centroid, info.position, sizeof info.position);
        ck_assert_mem_eq(c->normal, info.normal, sizeof info.normal);
        ck_assert_double_eq_tol(dot(c->torque, c->normal), info.impulse[3] / 0.01, 1e-9);
        ck_assert_double_eq_tol(dot(c->force, c->normal), info.impulse[0] / 0.01, 1e-6);
    }
    /* times of the stages; poses are unit quaternions, boxes hold their centroids */
    ck_assert_double_eq(all.evaluations[0].time, 0);
    ck_assert_double_gt(last->time, 0);
    const int32_t bodies = tb_model_count(p.model).bodies;
    for (int32_t i = 0; i < all.number_of_evaluations * bodies; i++) {
        const double *q = all.poses + 7 * i + 3;
        ck_assert_double_eq_tol(q[0] * q[0] + dot(q + 1, q + 1), 1, 1e-12);
    }
    for (int32_t i = 0; i < last->number_of_contacts; i++) {
        const tb_evaluation_contact *c = &all.contacts[last->first_contact + i];
        for (int32_t k = 0; k < all.number_of_box_shapes; k++) {
            const double *box =
                all.boxes + 6 * ((all.number_of_evaluations - 1) * all.number_of_box_shapes + k);
            if (all.box_shapes[k] != c->shape_a && all.box_shapes[k] != c->shape_b) continue;
            for (int x = 0; x < 3; x++)
                ck_assert(box[x] <= c->centroid[x] && c->centroid[x] <= box[3 + x]);
        }
    }
    play_end(&p);
}
END_TEST

START_TEST(keeping_changes_no_result_and_ends)
{
    played p = play_begin("prisms_27", "cvode"), q = play_begin("prisms_27", "cvode");
    TEST_OK(tb_state_keep_evaluations(q.state, 1 << 22, &error), &error);
    play(&p, 600);
    play(&q, 600);
    ck_assert_uint_eq(tb_state_hash(p.state), tb_state_hash(q.state));
    ck_assert_int_eq(tb_state_evaluations(p.state).number_of_evaluations, 0);
    ck_assert_int_gt(tb_state_evaluations(q.state).number_of_evaluations, 0);
    tb_state *fork;
    TEST_OK(tb_state_fork(q.state, &fork, &error), &error);
    ck_assert_int_eq(tb_state_evaluations(fork).number_of_evaluations, 0);
    tb_state_destroy(fork);
    TEST_OK(tb_state_reset(q.state, -1, &error), &error);
    ck_assert_int_eq(tb_state_evaluations(q.state).number_of_evaluations, 0);
    TEST_OK(tb_state_keep_evaluations(q.state, 0, &error), &error);
    play(&q, 1);
    ck_assert_int_eq(tb_state_evaluations(q.state).number_of_evaluations, 0);
    play_end(&p);
    play_end(&q);
}
END_TEST

START_TEST(evaluations_beyond_the_bound_are_counted)
{
    played p = play_begin("prisms_27", "rkfix4");
    int32_t some = 0;
    play(&p, 600);
    for (size_t bytes = 1; bytes < 1 << 16; bytes *= 2) {
        TEST_OK(tb_state_keep_evaluations(p.state, bytes, &error), &error);
        play(&p, 1);
        const tb_evaluations all = tb_state_evaluations(p.state);
        ck_assert_int_eq(all.number_of_evaluations + all.left_out,
                         tb_state_certificate(p.state)->iterations);
        check_shares(&all);
        some += all.number_of_evaluations > 0 && all.left_out > 0;
    }
    ck_assert_int_gt(some, 0);
    play_end(&p);
}
END_TEST

TEST_MAIN(triangles_share_the_normal_force_of_their_contact,
          the_last_evaluation_is_that_of_the_contacts, keeping_changes_no_result_and_ends,
          evaluations_beyond_the_bound_are_counted)
