/* Nanoseconds per pair of the narrow phase, by kind of pair and situation.
 *
 * Each line times 256 slightly different poses in turn, so that branches are as hard to foresee as
 * in a scene; the median of 15 rounds is printed with the smallest and the largest. */
#include "base/random.h"
#include "collide/collide.h"
#include "common_bench.h"

enum { POSES = 256, ROUNDS = 15, REPEATS = 40 };

static tb_posed_shape shape_of(tb_shape_type type, double x, double y, double z)
{
    tb_posed_shape s;
    memset(&s, 0, sizeof s);
    s.type = type;
    s.size = tb_v3(x, y, z);
    s.pose = tb_pose_identity();
    return s;
}

/* a hull in the form of a box, with topology written out */
static const tb_hull *box_hull(void)
{
    static double vertices[24], planes[24];
    static int32_t face_start[7], face_vertices[24], neighbour_start[9], neighbours[24];
    static const int32_t corners[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                          {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
    static tb_hull hull;
    for (int v = 0; v < 8; v++) {
        neighbour_start[v] = 3 * v;
        for (int c = 0; c < 3; c++) {
            vertices[3 * v + c] = v >> c & 1 ? 0.05 : -0.05;
            neighbours[3 * v + c] = v ^ (1 << c);
        }
    }
    neighbour_start[8] = 24;
    for (int f = 0; f < 6; f++) {
        face_start[f] = 4 * f;
        planes[4 * f + f / 2] = f & 1 ? 1 : -1;
        planes[4 * f + 3] = 0.05;
        memcpy(&face_vertices[4 * f], corners[f], sizeof corners[f]);
    }
    face_start[6] = 24;
    hull.number_of_vertices = 8;
    hull.number_of_faces = 6;
    hull.number_of_edges = 12;
    hull.number_of_face_indices = 24;
    hull.vertices = vertices;
    hull.planes = planes;
    hull.face_start = face_start;
    hull.face_vertices = face_vertices;
    hull.neighbour_start = neighbour_start;
    hull.neighbours = neighbours;
    return &hull;
}

/* a at the origin, b at (x, y, z) turned about X by `turn`; both jittered by `jitter` */
static void bench(const char *what, tb_posed_shape a, tb_posed_shape b, double x, double y,
                  double z, double turn, double jitter)
{
    static tb_posed_shape poses[POSES];
    tb_random random = tb_random_stream(5, 0);
    for (int i = 0; i < POSES; i++) {
        const tb_vec3 shift =
            tb_v3(tb_random_normal(&random), tb_random_normal(&random), tb_random_normal(&random));
        const tb_vec3 lean =
            tb_v3(tb_random_normal(&random), tb_random_normal(&random), tb_random_normal(&random));
        const tb_quaternion q = tb_q_mul(tb_q_from_rotation_vector(tb_v3_scale(lean, 10 * jitter)),
                                         tb_q_from_rotation_vector(tb_v3(turn, 0, 0)));
        poses[i] = b;
        poses[i].pose.position = tb_v3_add_scaled(tb_v3(x, y, z), shift, jitter);
        poses[i].pose.rotation = tb_q_matrix(q);
    }
    double ns[ROUNDS];
    long points = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = bench_now();
        for (int repeat = 0; repeat < REPEATS; repeat++)
            for (int i = 0; i < POSES; i++) {
                tb_contact_point p[TB_MANIFOLD_POINTS];
                uint32_t flags = 0;
                points += tb_collide_convex(&a, &poses[i], 2e-3, p, &flags);
            }
        ns[round] = (bench_now() - start) * 1e9 / (REPEATS * POSES);
    }
    bench_sort(ns, ROUNDS);
    printf("%-34s %8.1f ns  (%.1f to %.1f)  %.2f points\n", what, ns[ROUNDS / 2], ns[0],
           ns[ROUNDS - 1], (double)points / (ROUNDS * REPEATS * POSES));
}

int main(void)
{
    const tb_posed_shape plane = shape_of(TB_SHAPE_PLANE, 0, 0, 0);
    const tb_posed_shape sphere = shape_of(TB_SHAPE_SPHERE, 0.05, 0, 0);
    const tb_posed_shape capsule = shape_of(TB_SHAPE_CAPSULE, 0.02, 0.05, 0);
    const tb_posed_shape cylinder = shape_of(TB_SHAPE_CYLINDER, 0.05, 0.05, 0);
    const tb_posed_shape box = shape_of(TB_SHAPE_BOX, 0.05, 0.05, 0.05);
    const tb_posed_shape ellipsoid = shape_of(TB_SHAPE_ELLIPSOID, 0.05, 0.04, 0.05);
    tb_posed_shape hull = shape_of(TB_SHAPE_CONVEX, 0, 0, 0);
    hull.hull = box_hull();
    const double flat = 1e-10, loose = 1e-4, quarter = 0.7853981633974483, half = 2 * quarter;

    printf("narrow phase, double, margin 2 mm, shapes of 0.1 m\n");
    bench("plane-box, contact", plane, box, 0, 0, 0.05, 0, flat);
    bench("plane-box, apart", plane, box, 0, 0, 0.2, 0.3, loose);
    bench("plane-cylinder, standing", plane, cylinder, 0, 0, 0.05, 0, flat);
    bench("plane-hull, contact", plane, hull, 0, 0, 0.05, 0, flat);
    bench("sphere-sphere, contact", sphere, sphere, 0, 0, 0.1, 0, loose);
    bench("sphere-box, contact", sphere, box, 0, 0, 0.1, 0, loose);
    bench("sphere-cylinder, contact", sphere, cylinder, 0, 0, 0.1, 0, loose);
    bench("sphere-ellipsoid, contact", sphere, ellipsoid, 0, 0, 0.1, 0, loose);
    bench("sphere-hull, contact", sphere, hull, 0, 0, 0.1, 0, loose);
    bench("capsule-capsule, parallel", capsule, capsule, 0.04, 0, 0.02, 0, flat);
    bench("capsule-capsule, crossed", capsule, capsule, 0.04, 0, 0.02, half, loose);
    bench("capsule-box, lying", box, capsule, 0, 0, 0.07, half, flat);
    bench("capsule-box, apart", box, capsule, 0, 0.09, 0.09, half, loose);
    bench("capsule-hull, lying", hull, capsule, 0, 0, 0.07, half, flat);
    bench("box-box, far apart (1st axis)", box, box, 0.2, 0.02, 0.02, 0.3, loose);
    bench("box-box, apart by an edge axis", box, box, 0, 0.104, 0.104, quarter, loose);
    bench("box-box, apart by 1 mm", box, box, 0.01, 0.02, 0.101, 0, flat);
    bench("box-box, face on face", box, box, 0.01, 0.02, 0.1, 0, flat);
    bench("box-box, tilted on face", box, box, 0.01, 0.02, 0.11, 0.2, loose);
    bench("box-box, corner to corner", box, box, 0.1005, 0.1005, 0.1005, 0, flat);
    bench("cylinder-box, standing", box, cylinder, 0, 0, 0.1, 0, flat);
    bench("cylinder-box, lying", box, cylinder, 0, 0, 0.1, half, flat);
    bench("cylinder-box, apart by 1 mm", box, cylinder, 0, 0, 0.101, 0, flat);
    bench("cylinder-box, far apart", box, cylinder, 0, 0.09, 0.12, half, loose);
    bench("cylinder-cylinder, stacked", cylinder, cylinder, 0.01, 0, 0.1, 0, flat);
    bench("hull-hull, face on face", hull, hull, 0.01, 0.02, 0.1, 0, flat);
    bench("hull-hull, far apart", hull, hull, 0.01, 0.02, 0.13, 0.2, loose);
    bench("ellipsoid-box, contact", box, ellipsoid, 0, 0, 0.1, 0, loose);
    bench("ellipsoid-ellipsoid, contact", ellipsoid, ellipsoid, 0, 0, 0.0995, 0, loose);
    return 0;
}
