/* MJCF assets that need more than reading: primitives fitted to meshes, meshes made from
 * parameters, hulls with few vertices, images as height fields; and which of two geoms gives the
 * surface.
 *
 * Numbers are MuJoCo 4.0.0's for the same documents: geom_size, geom_pos, body_mass,
 * body_inertia. */
#include "mjcf_files.h"

START_TEST(the_geom_of_higher_priority_gives_the_surface)
{
    mjcf_case c = mjcf_load(WORLD(
        "<geom name='floor' type='plane' size='5 5 .1' friction='1 .02 .003' condim='6'/>"
        "<body><freejoint/><geom name='pad' size='.1' friction='.7 .01 .001' priority='1'/></body>"
        "<body><freejoint/><geom name='ice' size='.1' condim='1' priority='2'/></body>"
        "<body><freejoint/><geom name='low' size='.1' friction='3' priority='-1'/></body>"));
    const int32_t floor = mjcf_index(&c, TB_HANDLE_SHAPE, "floor");
    const int32_t pad = mjcf_index(&c, TB_HANDLE_SHAPE, "pad");
    const int32_t ice = mjcf_index(&c, TB_HANDLE_SHAPE, "ice");
    const int32_t low = mjcf_index(&c, TB_HANDLE_SHAPE, "low");
    tb_surface s = tb_model_pair_surface(c.model, floor, pad);
    TEST_NEAR(s.friction, 0.7, 0);
    ck_assert_int_eq(s.kind, TB_CONTACT_COULOMB);
    s = tb_model_pair_surface(c.model, ice, pad);
    ck_assert_int_eq(s.kind, TB_CONTACT_FRICTIONLESS);
    s = tb_model_pair_surface(c.model, low, floor);
    TEST_NEAR(s.friction, 1, 0);
    ck_assert_int_eq(s.kind, TB_CONTACT_ROLLING);
    TEST_NEAR(s.rolling_length, 0.003, 0);

    /* priorities are part of the model's bytes */
    tb_model *again = NULL;
    size_t size = 0;
    const unsigned char *bytes = tb_model_bytes(c.model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &c.error), &c.error);
    ck_assert_int_eq(again->shapes[pad].priority, 1);
    tb_model_destroy(again);
    mjcf_free(&c);
}
END_TEST

/* a lump without symmetry, moved and turned */
#define LUMP                                                                                       \
    "<mesh name='m' builtin='wedge' params='4 4 60 60 .3' scale='.1 .2 .3' refpos='.1 .2 .3' "     \
    "refquat='1 .2 .3 .4'/>"

static const struct {
    const char *fit, *type;
    double size[3], position[3];
} FITS[] = {
    {"false", "sphere", {0.0822672182081}, {0.114368536247, 0.0818369854631, 0.0456845977194}},
    {"false",
     "capsule",
     {0.0566400151149, 0.105201616837},
     {0.114368536247, 0.0818369854631, 0.0456845977194}},
    {"false",
     "cylinder",
     {0.0566400151149, 0.133521624394},
     {0.114368536247, 0.0818369854631, 0.0456845977194}},
    {"false",
     "box",
     {0.0336538604621, 0.0796261697676, 0.133521624394},
     {0.114368536247, 0.0818369854631, 0.0456845977194}},
    {"true", "sphere", {0.195707261684}, {0.12968140552, 0.0832250455335, 0.0678885199382}},
    {"true",
     "capsule",
     {0.11509023211, 0.0806170295749},
     {0.12968140552, 0.0832250455335, 0.0678885199382}},
    {"true",
     "cylinder",
     {0.11509023211, 0.195707261684},
     {0.12968140552, 0.0832250455335, 0.0678885199382}},
    {"true",
     "ellipsoid",
     {0.0504010635149, 0.11509023211, 0.195707261684},
     {0.12968140552, 0.0832250455335, 0.0678885199382}},
};

START_TEST(primitives_are_fitted_to_meshes)
{
    for (size_t i = 0; i < sizeof FITS / sizeof FITS[0]; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "<mujoco><compiler fitaabb='%s'/><asset>" LUMP "</asset><worldbody><body>"
                 "<freejoint/><geom name='g' type='%s' mesh='m' fitscale='1.1' pos='.1 .2 .3'/>"
                 "</body></worldbody></mujoco>",
                 FITS[i].fit, FITS[i].type);
        mjcf_case c = mjcf_load(text);
        const tb_model_shape *g = mjcf_shape(&c, "g");
        for (int k = 0; k < 3; k++) {
            TEST_NEAR(g->size[k], FITS[i].size[k], 2e-12);
            TEST_NEAR(g->position[k], FITS[i].position[k], 2e-12);
        }
        ck_assert_int_eq(c.model->number_of_mesh_assets, 0);
        mjcf_free(&c);
    }
    mjcf_refuses(MJCF("<asset>" LUMP "</asset><worldbody><geom type='plane' mesh='m' "
                      "size='1 1 1'/></worldbody>"),
                 TB_INVALID_ARGUMENT, 1, "a plane cannot be fitted");
    mjcf_refuses(MJCF("<asset>" LUMP "</asset><worldbody><geom type='capsule' mesh='m' size='1' "
                      "fromto='0 0 0 1 0 0'/></worldbody>"),
                 TB_INVALID_ARGUMENT, 1, "fromto stands beside mesh");
    /* a capsule for a flat thing has no length left */
    mjcf_refuses(
        MJCF("<compiler fitaabb='true'/><asset><mesh name='m' builtin='sphere' params='1'/>"
             "</asset><worldbody><geom type='capsule' mesh='m' fitscale='0'/></worldbody>"),
        TB_INVALID_ARGUMENT, 1, "size 1 is 0");
}
END_TEST

START_TEST(meshes_are_made_from_parameters)
{
    static const struct {
        const char *builtin, *parameters;
        double mass, moments, height; /* at 1 kg/m^3: kg, sum of the moments, com z */
    } MADE[] = {
        {"sphere", "2", 4.04704466165, 4.74650836737, 0},
        {"hemisphere", "3", 1.90974369098, 1.65410116051, 0.362606107394},
        {"cone", "8 .5", 3.29983158906, 3.93771651631, -0.214285714286},
        {"cone", "8 0", 1.88561805089, 1.58659928026, -0.5},
        {"supersphere", "12 .5 .5", 6.13496817138, 9.73226708749, 0},
        {"supertorus", "12 .3 1 1", 2.63710700186, 4.05163207317, 0},
        {"wedge", "5 3 60 60 .3", 0.336590562451, 0.12643896879, -0.717631834435},
    };
    for (size_t i = 0; i < sizeof MADE / sizeof MADE[0]; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "<mujoco><asset><mesh name='m' builtin='%s' params='%s'/></asset><worldbody>"
                 "<body name='b'><freejoint/><geom type='mesh' mesh='m' density='1'/></body>"
                 "</worldbody></mujoco>",
                 MADE[i].builtin, MADE[i].parameters);
        mjcf_case c = mjcf_load(text);
        const tb_model_body *b = mjcf_body(&c, "b");
        TEST_NEAR_RELATIVE(b->mass, MADE[i].mass, 1e-11);
        TEST_NEAR_RELATIVE(b->inertia[0] + b->inertia[1] + b->inertia[2], MADE[i].moments, 1e-11);
        TEST_NEAR(b->com[2], MADE[i].height, 1e-12);
        mjcf_free(&c);
    }
    /* a plate is a surface: it weighs as a shell */
    mjcf_case c = mjcf_load(MJCF("<asset><mesh name='m' builtin='plate' params='3 3'/></asset>"
                                 "<worldbody><body name='b'><freejoint/><geom type='mesh' mesh='m' "
                                 "density='1' contype='0' conaffinity='0'/></body></worldbody>"));
    TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 16.0 / 9, 1e-6);
    mjcf_free(&c);

    static const char *const BAD[][2] = {{"builtin='sphere' params='5'", "subdivisions is 5"},
                                         {"builtin='sphere' params='1 2'", "takes 1 params, not 2"},
                                         {"builtin='supertorus' params='8 0 1 1'", "radius is 0"},
                                         {"builtin='wedge' params='4 4 60 91 0'", "view is 91"},
                                         {"builtin='prism' params='5'", "builtin=\"prism\""}};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "<mujoco><asset><mesh name='m' %s/></asset><worldbody><geom type='mesh' mesh='m'/>"
                 "</worldbody></mujoco>",
                 BAD[i][0]);
        mjcf_refuses(text, TB_INVALID_ARGUMENT, 1, BAD[i][1]);
    }
}
END_TEST

START_TEST(a_hull_may_be_told_to_stop_growing)
{
    mjcf_case c = mjcf_load(
        MJCF("<asset><mesh name='m' builtin='sphere' params='2' maxhullvert='20'/>"
             "<mesh name='n' builtin='sphere' params='2'/></asset><worldbody>"
             "<body name='b'><freejoint/><geom name='g' type='mesh' mesh='m' density='1'/></body>"
             "<body><freejoint/><geom name='h' type='mesh' mesh='n'/></body></worldbody>"));
    ck_assert_int_eq(c.model->hulls[mjcf_shape(&c, "g")->asset].number_of_vertices, 20);
    ck_assert_int_eq(c.model->hulls[mjcf_shape(&c, "h")->asset].number_of_vertices, 162);
    TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 4.04704466165, 1e-11); /* of the whole mesh */
    mjcf_free(&c);
    mjcf_refuses(MJCF("<asset><mesh name='m' builtin='sphere' params='2' maxhullvert='3'/></asset>"
                      "<worldbody><geom type='mesh' mesh='m'/></worldbody>"),
                 TB_INVALID_ARGUMENT, 1, "maxhullvert is 3");
}
END_TEST

/* 2 x 2 pixels in colours: red 0 10 / 100 255 */
static const unsigned char COLOURED[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x02\x00\x00"
    "\x00\x02\x08\x02\x00\x00\x00\xfd\xd4\x9a\x73\x00\x00\x00\x16\x49\x44\x41\x54\x78\xda\x63"
    "\x60\x60\x60\xe0\x12\x39\xc1\x90\x92\x92\xf2\xff\xff\x7f\x00\x13\x3c\x05\x10\xc6\x22\x9f"
    "\x47\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";
/* 3 x 2 pixels in grey: 0 10 20 / 100 200 255 */
static const unsigned char GREY[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x03\x00\x00"
    "\x00\x02\x08\x00\x00\x00\x00\xb8\x1f\x39\xc6\x00\x00\x00\x10\x49\x44\x41\x54\x78\xda\x63"
    "\x60\xe0\x12\x61\x48\x39\xf1\x1f\x00\x04\x63\x02\x4a\xd1\xbd\x4e\xe3\x00\x00\x00\x00\x49"
    "\x45\x4e\x44\xae\x42\x60\x82";

#define FIELD(file)                                                                                \
    MJCF("<asset><hfield name='h' " file " size='1 2 5.1 1'/></asset><worldbody><geom "            \
         "type='hfield' hfield='h'/></worldbody>")

START_TEST(images_are_height_fields)
{
    static const mjcf_file COLOURS[] = {MJCF_TEXT_FILE("m.xml", FIELD("file='a/h.png'")),
                                        {"a/h.png", COLOURED, sizeof COLOURED - 1},
                                        {NULL, NULL, 0}};
    static const mjcf_file GREYS[] = {
        MJCF_TEXT_FILE("m.xml", FIELD("file='h' content_type='image/png'")),
        {"h", GREY, sizeof GREY - 1},
        {NULL, NULL, 0}};
    static const double OF_COLOURS[] = {2, 5.1, 0, 0.2}, OF_GREYS[] = {2, 4, 5.1, 0, 0.2, 0.4};
    mjcf_case c;
    TEST_OK(mjcf_load_files(COLOURS, &c), &c.error);
    const tb_height_field *h = &c.model->height_fields[0];
    ck_assert_int_eq(h->rows, 2);
    ck_assert_int_eq(h->columns, 2);
    for (int i = 0; i < 4; i++) TEST_NEAR(h->heights[i], OF_COLOURS[i], 1e-15);
    mjcf_free(&c);
    TEST_OK(mjcf_load_files(GREYS, &c), &c.error);
    h = &c.model->height_fields[0];
    ck_assert_int_eq(h->columns, 3);
    for (int i = 0; i < 6; i++) TEST_NEAR(h->heights[i], OF_GREYS[i], 1e-15);
    mjcf_free(&c);

    /* a truncated image, one with a wrong checksum, and none */
    unsigned char damaged[sizeof GREY];
    memcpy(damaged, GREY, sizeof GREY);
    damaged[0x30] ^= 1;
    const mjcf_file bad[][3] = {
        {GREYS[0], {"h", GREY, sizeof GREY - 20}, {NULL, NULL, 0}},
        {GREYS[0], {"h", damaged, sizeof GREY - 1}, {NULL, NULL, 0}},
        {GREYS[0], {"h", "hello", 5}, {NULL, NULL, 0}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        TEST_STATUS(mjcf_load_files(bad[i], &c), TB_DATA_LOSS, NULL);
        ck_assert(strstr(c.error.message, "m.xml:1: hfield 'h': ") != NULL);
    }
}
END_TEST

START_TEST(fromto_outweighs_pos)
{
    mjcf_case c = mjcf_load(MJCF("<default><geom pos='1 2 3'/></default><worldbody><geom name='g' "
                                 "type='capsule' size='.1' fromto='0 0 0 1 0 0'/></worldbody>"));
    MJCF_NEAR3(mjcf_shape(&c, "g")->position, 0.5, 0, 0);
    ck_assert_int_eq(mjcf_warnings(&c, "geom: 'g': pos has no effect: fromto gives the place"), 1);
    mjcf_free(&c);
}
END_TEST

TEST_MAIN(the_geom_of_higher_priority_gives_the_surface, primitives_are_fitted_to_meshes,
          meshes_are_made_from_parameters, a_hull_may_be_told_to_stop_growing,
          images_are_height_fields, fromto_outweighs_pos)
