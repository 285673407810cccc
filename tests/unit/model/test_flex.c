/* Soft flexcomps: their points, edges and pins beside MuJoCo's, files, and every refusal. */
#include "mjcf_files.h"

#include "model/import/mesh/mesh_file.h"

#define FLEX(attributes, children)                                                                 \
    WORLD("<flexcomp name='f' radius='.01' " attributes ">" children "</flexcomp>")
#define EDGES "<edge equality='true'/>"

static const double *start_of(const mjcf_case *c, int32_t vertex)
{
    char name[32];
    snprintf(name, sizeof name, "f_%d", (int)vertex);
    const tb_handle site = tb_scene_find(c->scene, TB_HANDLE_SITE, name);
    ck_assert_msg(!tb_handle_is_none(site), "no site %s", name);
    const tb_site_def *def = &c->scene->sites[scene_index(site)];
    return tb_handle_is_none(def->body) ? def->position
                                        : c->scene->bodies[scene_index(def->body)].position;
}

/* The sum of x + 2 y + 3 z over the points, each times its number from 1. */
static double weighted_sum(const mjcf_case *c, int32_t points)
{
    double sum = 0;
    for (int32_t i = 0; i < points; i++) {
        const double *p = start_of(c, i);
        sum += (i + 1) * (p[0] + 2 * p[1] + 3 * p[2]);
    }
    return sum;
}

static double length_of_edges(const mjcf_case *c)
{
    double sum = 0;
    for (int32_t i = 0; i < c->model->number_of_equalities; i++)
        sum += c->model->equalities[i].reference_a;
    return sum;
}

/* Numbers of MuJoCo 4.0. */
typedef struct expected {
    const char *attributes;
    int32_t bodies, dofs, edges, points;
    double sum, length;
} expected;

static const expected SHAPES[] = {
    {"type='grid' dim='1' count='5 1 1' spacing='.1 .1 .1'", 5, 15, 4, 5, 1, 0.4},
    {"type='circle' dim='1' count='7 1 1' spacing='.1 .1 .1'", 6, 18, 6, 6, -1.33923048454133, 0.6},
    {"type='grid' count='3 4 1' spacing='.1 .2 .1' pos='1 2 3' euler='30 0 40'", 12, 36, 23, 12,
     1106.59873415351, 3.94164078649987},
    {"type='disc' count='5 4 1' spacing='.1 .2 .1'", 20, 60, 43, 20, 5.45512036302999,
     1.8008922362218},
    {"type='square' count='3 3 1' spacing='.1 .1 .1' scale='2 2 2'", 9, 27, 16, 9, 3,
     1.76568542494924},
    {"type='grid' dim='3' count='3 2 4' spacing='.1 .2 .3'", 24, 72, 81, 24, 49.4,
     20.4735781541838},
    {"type='box' dim='2' count='3 4 5' spacing='.1 .2 .3'", 52, 156, 143, 52, 604.4,
     36.0546081038828},
    {"type='box' dim='3' count='3 4 5' spacing='.1 .2 .3'", 55, 165, 210, 55, 355,
     64.1381024153583},
    {"type='cylinder' dim='2' count='4 3 3' spacing='.1 .1 .3'", 32, 96, 83, 32, 155.940539600617,
     15.9429387041248},
    {"type='ellipsoid' dim='3' count='3 3 3' spacing='.1 .2 .3'", 27, 81, 98, 27, 58.2093679142946,
     17.1785664451516},
    {"type='ellipsoid' dim='3' count='3 3 3' spacing='.1 .2 .3' dof='radial'", 26, 26, 98, 27,
     58.2093679142946, 17.1785664451516},
    {"type='grid' count='3 4 1' spacing='.1 .1 .1' dof='2d'", 12, 24, 23, 12, 6.2,
     2.54852813742386},
    {"type='direct' dim='3' point='0 0 0 9 9 9 1 0 0 0 1 0 0 0 1' element='0 2 3 4' scale='2 3 4'",
     4, 12, 6, 4, 70, 22.0776872304636},
};

START_TEST(shapes_are_mujocos)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
        const expected *e = &SHAPES[i];
        char text[512];
        snprintf(text, sizeof text,
                 WORLD("<flexcomp name='f' mass='2' radius='.01' %s>" EDGES "</flexcomp>"),
                 e->attributes);
        mjcf_case c = mjcf_load(text);
        ck_assert_msg(
            c.model->number_of_bodies == e->bodies + 1 && c.model->number_of_dofs == e->dofs &&
                c.model->number_of_equalities == e->edges,
            "%s: %d bodies, %d dofs, %d edges", e->attributes, (int)c.model->number_of_bodies - 1,
            (int)c.model->number_of_dofs, (int)c.model->number_of_equalities);
        TEST_NEAR(weighted_sum(&c, e->points), e->sum, 1e-11 * fabs(e->sum));
        TEST_NEAR(length_of_edges(&c), e->length, 1e-12 * e->length);
        TEST_NEAR(c.model->bodies[e->bodies].mass, 2.0 / e->points, 1e-15);
        mjcf_free(&c);
    }
}
END_TEST

/* ---- pins, frames, defaults ---- */

/* Dofs of a grid of 4 x 3 with these pins. */
static int32_t dofs_with_pins(const char *pins)
{
    char text[512];
    snprintf(text, sizeof text, FLEX("count='4 3 1' spacing='.1 .1 .1'", EDGES "%s"), pins);
    mjcf_case c = mjcf_load(text);
    const int32_t dofs = c.model->number_of_dofs;
    mjcf_free(&c);
    return dofs;
}

START_TEST(pinned_points_are_the_parents)
{
    ck_assert_int_eq(dofs_with_pins(""), 36);
    ck_assert_int_eq(dofs_with_pins("<pin id='0 11'/>"), 30);
    ck_assert_int_eq(dofs_with_pins("<pin range='2 4 7 7'/>"), 24);
    ck_assert_int_eq(dofs_with_pins("<pin grid='0 0 3 2'/><pin id='0'/>"), 30);
    ck_assert_int_eq(dofs_with_pins("<pin gridrange='1 0 2 2'/>"), 18);
    /* an edge between two of them has no length to keep */
    mjcf_case c =
        mjcf_load(FLEX("dim='1' count='4 1 1' spacing='.1 .1 .1'", EDGES "<pin id='0 1'/>"));
    ck_assert_int_eq(c.model->number_of_equalities, 2);
    ck_assert_int_eq(c.model->number_of_bodies, 3);
    mjcf_free(&c);
}
END_TEST

/* MuJoCo 4.0: body positions (1, 0, 0.1), (1, 0, 0), (1, 0, -0.1), orientations 1 0 0 0, armature 0.1. */
START_TEST(slides_ignore_frames_and_take_defaults)
{
    mjcf_case c = mjcf_load(
        MJCF("<default><joint armature='.1'/></default><worldbody><body name='b' euler='0 0 90'>"
             "<frame euler='0 0 90' pos='1 0 0'><flexcomp name='f' dim='1' count='3 1 1' "
             "spacing='.1 .1 .1' radius='.01' euler='0 90 0'/></frame></body></worldbody>"));
    for (int i = 0; i < 3; i++) {
        const double *p = start_of(&c, i);
        TEST_NEAR(p[0], 1, 1e-15);
        TEST_NEAR(p[1], 0, 1e-15);
        TEST_NEAR(p[2], 0.1 * (1 - i), 1e-15);
        const scene_body *body =
            &c.scene->bodies[scene_index(tb_scene_find(c.scene, TB_HANDLE_BODY, "f_1"))];
        TEST_NEAR(body->orientation[0], 1, 1e-15);
    }
    for (int i = 0; i < 9; i++) {
        TEST_NEAR(c.model->dofs[i].armature, 0.1, 0);
        TEST_NEAR(c.scene->joints[i].axis[i % 3], 1, 0);
    }
    mjcf_free(&c);
}
END_TEST

START_TEST(edges_are_springs_and_dampers)
{
    mjcf_case c = mjcf_load(
        FLEX("dim='1' count='3 1 1' spacing='.1 .1 .1'", "<edge stiffness='100' damping='10'/>"));
    ck_assert_int_eq(c.model->number_of_tendons, 2);
    ck_assert_int_eq(c.model->number_of_equalities, 0);
    TEST_NEAR(c.model->tendons[1].stiffness, 100, 0);
    TEST_NEAR(c.model->tendons[1].damping, 10, 0);
    TEST_NEAR(c.model->tendons[1].spring_lower, 0.1, 1e-16);
    mjcf_free(&c);
}
END_TEST

START_TEST(names_go_with_prefixes_and_replicas)
{
    mjcf_case c = mjcf_load(
        MJCF("<worldbody><replicate count='2' offset='1 0 0'><body name='b'><flexcomp name='f' "
             "dim='1' count='3 1 1' spacing='.1 .1 .1' radius='.01'>" EDGES
             "<contact contype='0' conaffinity='0'/></flexcomp></body></replicate></worldbody>"
             "<equality><connect body1='f_01' anchor='0 0 0'/></equality>"));
    ck_assert_int_eq(c.model->number_of_dofs, 18);
    ck_assert_int_eq(c.model->number_of_equalities, 5);
    ck_assert(!tb_handle_is_none(tb_scene_find(c.scene, TB_HANDLE_TENDON, "f_1_20")));
    mjcf_free(&c);
}
END_TEST

/* ---- contacts ---- */

START_TEST(balls_and_elements_have_the_masks_and_the_surface)
{
    mjcf_case c = mjcf_load(WORLD(
        "<geom name='p' type='plane' size='1 1 1' contype='2' conaffinity='0'/><geom name='b' "
        "type='box' size='1 1 1' contype='4' conaffinity='4'/><flexcomp name='f' dim='1' "
        "count='3 1 1' spacing='.1 .1 .1' radius='.02'><contact selfcollide='none' "
        "friction='.3' contype='1' conaffinity='2'/></flexcomp>"));
    ck_assert_int_eq(c.model->number_of_shapes, 5);
    ck_assert_int_eq(c.model->number_of_elements, 2);
    ck_assert(tb_model_shapes_collide(c.model, 0, 2));
    ck_assert(!tb_model_shapes_collide(c.model, 1, 2));
    ck_assert(!tb_model_shapes_collide(c.model, 2, 3));
    TEST_NEAR(c.model->shapes[2].surface.friction, 0.3, 0);
    TEST_NEAR(c.model->shapes[2].size[0], 0.02, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(elements_cover_the_outside)
{
    static const struct {
        const char *flex;
        int32_t elements, balls;
    } CASES[] = {{"dim='1' count='5 1 1'", 4, 5},
                 {"dim='2' count='3 3 1'", 8, 9},
                 {"dim='3' count='3 3 3'", 48, 26}, /* one point is inside */
                 {"type='ellipsoid' dim='3' count='3 3 3'", 48, 26}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 WORLD("<flexcomp name='f' spacing='.1 .1 .1' radius='.01' %s/>"), CASES[i].flex);
        mjcf_case c = mjcf_load(text);
        ck_assert_int_eq(c.model->number_of_elements, CASES[i].elements);
        ck_assert_int_eq(c.model->number_of_shapes, CASES[i].balls);
        mjcf_free(&c);
    }
}
END_TEST

START_TEST(elements_touch_by_groups)
{
    static const struct {
        const char *flex;
        int32_t group;
    } CASES[] = {{"<flexcomp name='f' count='3 3 1'/>", 0},
                 {"<flexcomp name='f' count='3 3 1'><contact selfcollide='none'/></flexcomp>", 1},
                 {"<flexcomp name='f' count='3 3 1'><contact conaffinity='2'/></flexcomp>", 1},
                 /* all edges of its tetrahedra keep their length: it is rigid */
                 {"<flexcomp name='f' dim='3' count='3 3 3'>" EDGES "</flexcomp>", 1},
                 {"<flexcomp name='f' dim='3' count='3 3 3'/>", 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, WORLD("%s"), CASES[i].flex);
        mjcf_case c = mjcf_load(text);
        ck_assert_int_eq(c.model->elements[0].group, CASES[i].group);
        ck_assert(c.model->has_element_pairs == (CASES[i].group == 0));
        mjcf_free(&c);
    }
    mjcf_case c = mjcf_load(WORLD("<flexcomp name='g' count='3 3 1'><contact selfcollide='none'/>"
                                  "</flexcomp><flexcomp name='f' count='3 3 1'><contact "
                                  "selfcollide='none'/></flexcomp>"));
    ck_assert_int_eq(c.model->number_of_elements, 16);
    ck_assert_int_eq(c.model->elements[15].group, 2);
    ck_assert(c.model->has_element_pairs);
    mjcf_free(&c);
}
END_TEST

/* ---- elasticity ---- */

/* A grid's triangles and tetrahedra; an open box of 10 triangles, which bends at 8 edges
 * and 5 diagonals. */
START_TEST(elasticity_makes_elastics)
{
    static const struct {
        const char *flex, *flags, *elasticity;
        int32_t elastics, tendons;
    } CASES[] = {
        {"dim='3' count='2 2 2'", "", "young='1e4' poisson='.2' damping='.1'", 6, 0},
        {"count='3 3 1'", "", "young='1e4' thickness='.01' elastic2d='stretch'", 8, 0},
        {"count='3 3 1'", "", "young='1e4' thickness='.01' elastic2d='bend'", 0, 24},
        {"count='3 3 1'", "", "young='1e4' thickness='.01' elastic2d='both'", 8, 24},
        {"count='3 3 1'", "", "young='1e4' thickness='.01'", 0, 0},
        {"dim='1' count='3 1 1'", "", "young='1e4'", 0, 0},
        {"type='box' dim='2' count='2 2 2'", "", "young='1e4' thickness='.01' elastic2d='bend'", 8,
         15},
        {"dim='3' count='2 2 2'", "<flag spring='disable'/>", "young='1e4'", 0, 0},
        {"dim='3' count='2 2 2'", "<flag damper='disable'/>", "young='1e4' damping='1'", 6, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 MJCF("<option>%s</option><worldbody><flexcomp name='f' spacing='.1 .1 .1' "
                      "radius='.01' %s><elasticity %s/></flexcomp></worldbody>"),
                 CASES[i].flags, CASES[i].flex, CASES[i].elasticity);
        mjcf_case c = mjcf_load(text);
        ck_assert_int_eq(c.model->number_of_elastics, CASES[i].elastics);
        ck_assert_int_eq(c.model->number_of_tendons, CASES[i].tendons);
        mjcf_free(&c);
    }
    mjcf_case c = mjcf_load(
        WORLD("<replicate count='2' offset='1 0 0'><flexcomp name='f' dim='3' count='2 2 2' "
              "spacing='.1 .1 .1' radius='0'><contact contype='0' conaffinity='0'/>"
              "<elasticity young='1e4' poisson='.2' damping='.1'/><pin id='0'/></flexcomp>"
              "</replicate>"));
    const tb_model_elastic *e = c.model->elastics;
    ck_assert_int_eq(c.model->number_of_elastics, 12);
    ck_assert_int_eq(e->kind, TB_ELASTIC_TETRAHEDRON);
    TEST_NEAR(e->damping, 0.1, 0);
    /* 2 mu V / length^2, the mean square of the edges 5/3 of the side's */
    TEST_NEAR(e->stiffness[1], 2 * (1e4 / 2.4) * (1e-3 / 6) / (0.01 * 10 / 6), 1e-9);
    TEST_NEAR(c.model->shapes[0].size[0], 1e-6, 0);
    mjcf_free(&c);
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_is_not_supported_is_named)
{
    static const struct {
        const char *attributes, *children;
        tb_status status;
        const char *words;
    } CASES[] = {
        {"count='3 3 1'", "<elasticity young='1e4' elastic2d='bend'/>", TB_INVALID_ARGUMENT,
         "wants dim 2 and a thickness"},
        {"dof='radial' count='3 3 1'", "<elasticity young='1e4' thickness='.01' elastic2d='bend'/>",
         TB_UNSUPPORTED, "radial"},
        {"count='3 3 1'", "<edge equality='strain'/>", TB_UNSUPPORTED, "equalities of vertices"},
        {"dim='3' dof='trilinear'", "", TB_UNSUPPORTED, "interpolated"},
        {"count='3 3 1'", "<plugin plugin='x'/>", TB_UNSUPPORTED, "plugins"},
        {"count='3 3 1'", "<edge stiffness='1'/>", TB_INVALID_ARGUMENT, "0 but for dim 1"},
        {"count='3 3 1'", "<frame/>", TB_INVALID_ARGUMENT, "unknown element"},
        {"count='3 3 1'", "<pin id='9'/>", TB_INVALID_ARGUMENT, "one of 9 points"},
        {"count='3 3 1'", "<pin grid='3 0'/>", TB_INVALID_ARGUMENT, "not in the grid"},
        {"count='3 3 1'", "<pin range='1'/>", TB_INVALID_ARGUMENT, "not 2 for each pin"},
        {"type='box' count='2 2 2' spacing='.1 .1 .1'", "<pin grid='0 0'/>", TB_INVALID_ARGUMENT,
         "of a grid"},
        {"count='3 1 1'", "", TB_INVALID_ARGUMENT, "too small"},
        {"count='0 1 1'", "", TB_INVALID_ARGUMENT, "count 1 is 0"},
        {"count='1000 1000 1'", "", TB_RESOURCE_EXHAUSTED, "more than 20000 points"},
        {"type='box' count='1 2 2'", "", TB_INVALID_ARGUMENT, "less than 2"},
        {"type='circle' count='9 1 1'", "", TB_INVALID_ARGUMENT, "does not have dim 2"},
        {"spacing='.01 .1 .1'", "", TB_INVALID_ARGUMENT, "twice the radius"},
        {"dim='4'", "", TB_INVALID_ARGUMENT, "dim is 4"},
        {"mass='0'", "", TB_INVALID_ARGUMENT, "mass 0"},
        {"type='direct' point='0 0 0 1'", "", TB_INVALID_ARGUMENT, "point has 4 numbers"},
        {"type='direct' dim='1' point='0 0 0 1 0 0' element='0'", "", TB_INVALID_ARGUMENT,
         "element has 1 numbers"},
        {"type='direct' dim='1' point='0 0 0 1 0 0' element='0 2'", "", TB_INVALID_ARGUMENT,
         "element has 2"},
        {"type='direct' dim='1' point='0 0 0 1 0 0' element='0 0'", "", TB_INVALID_ARGUMENT,
         "point 0 twice"},
        {"type='gmsh'", "", TB_INVALID_ARGUMENT, "'file' is missing"},
        {"type='sponge'", "", TB_INVALID_ARGUMENT, "type"}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, WORLD("<flexcomp name='f' radius='.01' %s>%s</flexcomp>"),
                 CASES[i].attributes, CASES[i].children);
        mjcf_refuses(text, CASES[i].status, 1, CASES[i].words);
    }
    mjcf_refuses(WORLD("<flexcomp count='3 3 1'/>"), TB_INVALID_ARGUMENT, 1, "'name' is missing");
    mjcf_refuses(MJCF("<option><flag spring='disable'/></option><worldbody><flexcomp name='f' "
                      "dim='3' count='2 2 2'><elasticity young='1' damping='1'/></flexcomp>"
                      "</worldbody>"),
                 TB_UNSUPPORTED, 1, "while the flag spring is off");
}
END_TEST

/* ---- files ---- */

#define OLD_TEXT                                                                                   \
    "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n3 1 \"x\"\n$EndPhysicalNames\n"      \
    "$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n7 0 0 1\n8 5 5 5\n$EndNodes\n"                          \
    "$Elements\n3\n1 15 2 0 1 1\n2 2 2 0 1 1 2 3\n3 4 2 0 1 1 2 3 7\n$EndElements\n"
#define NEW_TEXT                                                                                   \
    "$MeshFormat\r\n4.1 0 8\r\n$EndMeshFormat\r\n$Nodes\r\n2 4 1 9\r\n0 1 0 1\r\n9\r\n0 0 1\r\n"   \
    "3 1 0 3\r\n1\r\n2\r\n3\r\n0 0 0\r\n1 0 0\r\n0 1 0\r\n$EndNodes\r\n$Elements\r\n2 2 1 2\r\n"   \
    "2 1 2 1\r\n1 1 2 3\r\n3 1 4 1\r\n2 1 2 3 9\r\n$EndElements\r\n"

/* A file of bytes, written number by number. */
typedef struct bytes {
    char data[1024];
    size_t size;
} bytes;

static void put(bytes *b, const void *what, size_t size)
{
    ck_assert_uint_le(b->size + size, sizeof b->data - 1);
    memcpy(b->data + b->size, what, size);
    b->size += size;
}

static void put_text(bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

static void put_whole(bytes *b, int64_t number, size_t size)
{
    put(b, &number, size); /* little endian, as the tests' machines are */
}

static void put_point(bytes *b, double x, double y, double z)
{
    const double p[3] = {x, y, z};
    put(b, p, sizeof p);
}

/* One tetrahedron: with a header for its block, as both programs do that write such files. */
static bytes old_binary(void)
{
    bytes b = {.size = 0};
    static const double POINTS[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    put_text(&b, "$MeshFormat\n2.2 1 8\n");
    put_whole(&b, 1, 4);
    put_text(&b, "\n$EndMeshFormat\n$Nodes\n4\n");
    for (int i = 0; i < 4; i++) {
        put_whole(&b, i + 1, 4);
        put_point(&b, POINTS[i][0], POINTS[i][1], POINTS[i][2]);
    }
    put_text(&b, "\n$EndNodes\n$Elements\n1\n");
    static const int HEADER[] = {4, 1, 2, 1, 0, 1, 1, 2, 3, 4}; /* type, count, tags; element */
    for (size_t i = 0; i < sizeof HEADER / sizeof HEADER[0]; i++) put_whole(&b, HEADER[i], 4);
    put_text(&b, "\n$EndElements\n");
    return b;
}

static bytes new_binary(void)
{
    bytes b = {.size = 0};
    put_text(&b, "$MeshFormat\n4.1 1 8\n");
    put_whole(&b, 1, 4);
    put_text(&b, "\n$EndMeshFormat\n$Nodes\n");
    static const int NODES[] = {1, 4, 1, 4};
    for (int i = 0; i < 4; i++) put_whole(&b, NODES[i], 8);
    put_whole(&b, 3, 4), put_whole(&b, 1, 4), put_whole(&b, 0, 4), put_whole(&b, 4, 8);
    for (int i = 0; i < 4; i++) put_whole(&b, i + 1, 8);
    put_point(&b, 0, 0, 0), put_point(&b, 1, 0, 0), put_point(&b, 0, 1, 0), put_point(&b, 0, 0, 1);
    put_text(&b, "\n$EndNodes\n$Elements\n");
    static const int ELEMENTS[] = {1, 1, 1, 1};
    for (int i = 0; i < 4; i++) put_whole(&b, ELEMENTS[i], 8);
    put_whole(&b, 3, 4), put_whole(&b, 1, 4), put_whole(&b, 4, 4), put_whole(&b, 1, 8);
    for (int i = 0; i < 5; i++) put_whole(&b, i == 0 ? 1 : i, 8);
    put_text(&b, "\n$EndElements\n");
    return b;
}

/* The corner tetrahedron, whatever the order of its nodes. */
static void check_tetrahedron(const char *data, size_t size)
{
    tb_simplices body;
    tb_error error = {0};
    TEST_OK(tb_gmsh_parse(data, size, "t.msh", &body, &error), &error);
    ck_assert_int_eq(body.dimension, 3);
    ck_assert_int_eq(body.number_of_simplices, 1);
    double sum[3] = {0};
    for (int k = 0; k < 4; k++)
        for (int x = 0; x < 3; x++) sum[x] += body.points[3 * body.simplices[k] + x];
    for (int x = 0; x < 3; x++) TEST_NEAR(sum[x], 1, 0);
    tb_simplices_free(&body);
}

START_TEST(gmsh_is_read_in_all_its_forms)
{
    check_tetrahedron(OLD_TEXT, sizeof OLD_TEXT - 1);
    check_tetrahedron(NEW_TEXT, sizeof NEW_TEXT - 1);
    const bytes old = old_binary(), new = new_binary();
    check_tetrahedron(old.data, old.size);
    check_tetrahedron(new.data, new.size);
    /* cut off anywhere, it is refused */
    const struct {
        const char *data;
        size_t size;
    } FILES[] = {{OLD_TEXT, sizeof OLD_TEXT - 1},
                 {NEW_TEXT, sizeof NEW_TEXT - 1},
                 {old.data, old.size},
                 {new.data, new.size}};
    for (int f = 0; f < 4; f++)
        for (size_t size = 0; size < FILES[f].size - 16; size++) {
            tb_simplices body;
            tb_error error = {0};
            char *cut = calloc(size + 1, 1);
            memcpy(cut, FILES[f].data, size);
            ck_assert_int_ne(tb_gmsh_parse(cut, size, "t.msh", &body, &error), TB_OK);
            ck_assert_ptr_null(body.points);
            free(cut);
        }
}
END_TEST

START_TEST(faults_of_gmsh_files_are_named)
{
    static const struct {
        const char *text;
        tb_status status;
        const char *words;
    } CASES[] = {
        {"x", TB_INVALID_ARGUMENT, "does not begin"},
        {"$MeshFormat\n2.1 0 8\n$EndMeshFormat\n", TB_UNSUPPORTED, "versions 2.2 and 4.1"},
        {"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n", TB_INVALID_ARGUMENT, "no section of nodes"},
        {"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 x 0\n$EndNodes\n",
         TB_INVALID_ARGUMENT, "no number"},
        {"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n-1\n$EndNodes\n", TB_INVALID_ARGUMENT,
         "negative"},
        {"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 1e300 0\n$EndNodes\n",
         TB_INVALID_ARGUMENT, "too far"},
        {"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 0 0\n2 0 0 0\n$EndNodes\n",
         TB_INVALID_ARGUMENT, "does not end"},
        {"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 0 0\n$EndNodes\n$Elements\n1\n1 3 0 "
         "1 1 1 1\n$EndElements\n",
         TB_UNSUPPORTED, "no point, segment"},
        {"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 0 0\n$EndNodes\n$Elements\n1\n1 1 0 "
         "1 2\n$EndElements\n",
         TB_INVALID_ARGUMENT, "no node 2"}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tb_simplices body;
        tb_error error = {0};
        const tb_status status =
            tb_gmsh_parse(CASES[i].text, strlen(CASES[i].text), "t.msh", &body, &error);
        ck_assert_msg(status == CASES[i].status && strstr(error.message, CASES[i].words) != NULL,
                      "%s: %s", CASES[i].text, error.message);
    }
}
END_TEST

START_TEST(files_become_flexes)
{
    static const char LINE[] = "v 0 0 0\nv 2 0 0\nv 1 0 0\nv 3 0 0\nf 1 2 3\nl 1 3 2\nl 2 4\n";
    static const char ROOF[] = "v -1 -1 1\nv 1 -1 1\nv 0 1 1\nf 1 2 3\nf 1 3 2\n";
    static const mjcf_file FILES[] = {
        MJCF_TEXT_FILE(
            "main.xml",
            WORLD("<flexcomp name='l' type='mesh' file='l.obj' dim='1' radius='.1'><contact "
                  "contype='0' conaffinity='0'/>" EDGES "</flexcomp>"
                  "<flexcomp name='g' type='gmsh' file='g.msh'><contact contype='0' "
                  "conaffinity='0'/>" EDGES "</flexcomp>"
                  "<flexcomp name='r' type='mesh' file='r.obj' dim='3' scale='2 2 2'><contact "
                  "contype='0' conaffinity='0'/>" EDGES "</flexcomp>")),
        MJCF_TEXT_FILE("l.obj", LINE),
        MJCF_TEXT_FILE("g.msh", OLD_TEXT),
        MJCF_TEXT_FILE("r.obj", ROOF),
        {NULL, NULL, 0}};
    mjcf_case c;
    ck_assert_int_eq(mjcf_load_files(FILES, &c), TB_OK);
    /* edges of 1, 1 and 1 m; of a tetrahedron; of the one over the origin that has a volume */
    ck_assert_int_eq(c.model->number_of_equalities, 3 + 6 + 6);
    ck_assert_int_eq(c.model->number_of_dofs, 3 * (4 + 4 + 4));
    TEST_NEAR(length_of_edges(&c),
              3 + 3 + 3 * sqrt(2) + 2 * (2 + 2 * sqrt(5) + 2 * sqrt(3) + sqrt(2)), 1e-12);
    mjcf_free(&c);
}
END_TEST

TEST_MAIN(shapes_are_mujocos, pinned_points_are_the_parents, slides_ignore_frames_and_take_defaults,
          edges_are_springs_and_dampers, names_go_with_prefixes_and_replicas,
          balls_and_elements_have_the_masks_and_the_surface, elements_cover_the_outside,
          elements_touch_by_groups, elasticity_makes_elastics, what_is_not_supported_is_named,
          gmsh_is_read_in_all_its_forms, faults_of_gmsh_files_are_named, files_become_flexes)
