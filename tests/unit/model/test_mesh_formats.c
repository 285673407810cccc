/* COLLADA and MSH meshes, and models in zip archives. */
#include <zlib.h>

#include "mjcf_files.h"
#include "model/import/archive.h"
#include "model/import/mesh/mesh_file.h"

/* ---- COLLADA ---- */

/* a cube of edge 2 as a polylist with normals beside, triangles and a strip */
#define GEOMETRY                                                                                   \
    "<library_geometries><geometry id='g'><mesh><source id='p'><float_array id='a' count='24'>"    \
    "-1 -1 -1 1 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 1 -1 1 1 1 1 -1 1 1</float_array>"                    \
    "<technique_common><accessor source='#a' count='8' stride='3'/></technique_common></source>"   \
    "<vertices id='v'><input semantic='POSITION' source='#p'/></vertices><polylist count='4'>"     \
    "<input semantic='NORMAL' source='#n' offset='1'/><input semantic='VERTEX' source='#v' "       \
    "offset='0'/><vcount>4 4 4 4</vcount><p>0 9 3 9 2 9 1 9 4 9 5 9 6 9 7 9 0 9 1 9 5 9 4 9 2 9 "  \
    "3 9 7 9 6 9</p></polylist><triangles count='2'><input semantic='VERTEX' source='#v' "         \
    "offset='0'/><p>1 2 6 1 6 5</p></triangles><tristrips count='1'><input semantic='VERTEX' "     \
    "source='#v' offset='0'/><p>0 4 3 7</p></tristrips></mesh></geometry></library_geometries>"
#define COLLADA(text)                                                                              \
    "<?xml version='1.0'?><COLLADA xmlns='http://www.collada.org/2005/11/COLLADASchema' "          \
    "version='1.4.1'><asset><unit meter='0.01'/><up_axis>Y_UP</up_axis></asset>" text "</COLLADA>"
#define SCENE(nodes)                                                                               \
    "<library_visual_scenes><visual_scene id='s'>" nodes "</visual_scene></library_visual_scenes>" \
    "<scene><instance_visual_scene url='#s'/></scene>"
#define DEEP                                                                                       \
    "<library_nodes><node id='n'><scale>1 2 1</scale><instance_geometry url='#g'/></node>"         \
    "</library_nodes>"

static tb_mass_properties mass_of(const char *text, tb_mesh_data *mesh)
{
    tb_error error = {0};
    TEST_OK(tb_dae_parse(text, strlen(text), "t.dae", mesh, &error), &error);
    return tb_mesh_mass_properties(mesh->vertices, mesh->number_of_vertices, mesh->triangles,
                                   mesh->number_of_triangles, TB_MESH_INERTIA_EXACT);
}

START_TEST(collada_scenes_put_geometries_in_their_places)
{
    tb_mesh_data mesh;
    tb_mass_properties m = mass_of(COLLADA(GEOMETRY), &mesh);
    ck_assert_int_eq(mesh.number_of_vertices, 8);
    ck_assert_int_eq(mesh.number_of_triangles, 12);
    TEST_NEAR_RELATIVE(m.volume, 8e-6, 1e-12); /* 2 cm a side; outside is outside */
    tb_mesh_data_free(&mesh);

    /* moved and turned, scaled by the node that it instances; and mirrored by a matrix */
    m = mass_of(
        COLLADA(GEOMETRY DEEP SCENE("<node><translate>5 0 0</translate><rotate>0 0 1 90</rotate>"
                                    "<instance_node url='#n'/></node><node><matrix>-1 0 0 -5 0 1 "
                                    "0 0 0 0 1 0 0 0 0 1</matrix><instance_geometry url='#g'/>"
                                    "</node>")),
        &mesh);
    ck_assert_int_eq(mesh.number_of_triangles, 24);
    TEST_NEAR_RELATIVE(m.volume, 24e-6, 1e-12);
    TEST_NEAR_RELATIVE(m.com[0], 0.05 / 3, 1e-12);
    TEST_NEAR(m.com[1], 0, 1e-15);
    double widest = 0; /* turned: the long side lies along x, 5 cm + 2 cm */
    for (int32_t i = 0; i < mesh.number_of_vertices; i++)
        widest = fmax(widest, mesh.vertices[3 * i]);
    TEST_NEAR(widest, 0.07, 1e-15);
    tb_mesh_data_free(&mesh);
}
END_TEST

START_TEST(collada_that_makes_no_sense_is_refused)
{
    static const struct {
        const char *text;
        tb_status status;
        const char *words;
    } CASES[] = {
        {"<COLLADA", TB_INVALID_ARGUMENT, "malformed XML"},
        {"<robot/>", TB_INVALID_ARGUMENT, "not 'COLLADA'"},
        {COLLADA(""), TB_INVALID_ARGUMENT, "no triangles"},
        {COLLADA(GEOMETRY SCENE("<node><instance_geometry url='#h'/></node>")), TB_INVALID_ARGUMENT,
         "nothing has the id 'h'"},
        {COLLADA(GEOMETRY SCENE("<node><instance_geometry url='a.dae#g'/></node>")),
         TB_INVALID_ARGUMENT, "does not refer to this file"},
        {COLLADA(GEOMETRY SCENE("<node><translate>5 0</translate></node>")), TB_INVALID_ARGUMENT,
         "2 numbers where 3 are expected"},
        {COLLADA(GEOMETRY SCENE("<node><skew>1</skew></node>")), TB_UNSUPPORTED, "skew: "},
        {COLLADA(GEOMETRY SCENE("<node id='n'><instance_node url='#n'/></node>")),
         TB_RESOURCE_EXHAUSTED, "more than 64 deep"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tb_mesh_data mesh;
        tb_error error = {0};
        TEST_STATUS(tb_dae_parse(CASES[i].text, strlen(CASES[i].text), "t.dae", &mesh, &error),
                    CASES[i].status, &error);
        ck_assert_msg(strstr(error.message, CASES[i].words) != NULL, "%s", error.message);
        ck_assert_ptr_null(mesh.vertices);
    }

    /* a node that instances the next one twice, 40 times over: 2^40 cubes */
    static char text[8000] = "<COLLADA><library_nodes>";
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "<node id='n%d'><instance_node url='#n%d'/><instance_node url='#n%d'/></node>", i,
                 i + 1, i + 1);
    strcat(text, "<node id='n40'/></library_nodes>"
                 "<library_visual_scenes><visual_scene id='s'><node><instance_node url='#n0'/>"
                 "</node></visual_scene></library_visual_scenes><scene><instance_visual_scene "
                 "url='#s'/></scene></COLLADA>");
    tb_mesh_data mesh;
    tb_error error = {0};
    TEST_STATUS(tb_dae_parse(text, strlen(text), "t.dae", &mesh, &error), TB_RESOURCE_EXHAUSTED,
                &error);
    ck_assert(strstr(error.message, "more than 100000 instances") != NULL);
}
END_TEST

/* ---- MSH ---- */

START_TEST(msh_files_are_checked_as_they_are_read)
{
    int32_t words[16 / 4 + 12 + 3] = {4, 0, 0, 1};
    const float vertices[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(words + 4, vertices, sizeof vertices);
    tb_mesh_data mesh;
    tb_error error = {0};
    words[16] = 0, words[17] = 2, words[18] = 1;
    TEST_OK(tb_msh_parse((const char *)words, sizeof words, "t.msh", &mesh, &error), &error);
    ck_assert_int_eq(mesh.triangles[1], 2);
    TEST_NEAR(mesh.vertices[3], 1, 0);
    tb_mesh_data_free(&mesh);
    words[17] = 4;
    TEST_STATUS(tb_msh_parse((const char *)words, sizeof words, "t.msh", &mesh, &error),
                TB_INVALID_ARGUMENT, &error);
    ck_assert(strstr(error.message, "face 0 uses vertex 4 of 4") != NULL);
    words[17] = 2;
    words[4] = 0x7fc00000; /* not a number */
    TEST_STATUS(tb_msh_parse((const char *)words, sizeof words, "t.msh", &mesh, &error),
                TB_INVALID_ARGUMENT, &error);
    words[1] = 3; /* normals for some of the vertices */
    TEST_STATUS(tb_msh_parse((const char *)words, sizeof words, "t.msh", &mesh, &error),
                TB_DATA_LOSS, &error);
}
END_TEST

/* ---- archives ---- */

typedef struct packing {
    unsigned char bytes[4096];
    size_t used, directory_used;
    unsigned char directory[1024];
    int files;
} packing;

static void put(unsigned char *at, size_t size, uint32_t number)
{
    for (size_t i = 0; i < size; i++) at[i] = (unsigned char)(number >> 8 * i);
}

static void pack(packing *p, const char *name, const char *text, bool deflated)
{
    unsigned char packed[2048];
    const size_t size = strlen(text), name_size = strlen(name);
    size_t packed_size = size;
    memcpy(packed, text, size);
    if (deflated) {
        z_stream stream = {0};
        ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                         Z_OK);
        stream.next_in = (unsigned char *)(uintptr_t)text;
        stream.avail_in = (uInt)size;
        stream.next_out = packed;
        stream.avail_out = sizeof packed;
        ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
        packed_size = stream.total_out;
        deflateEnd(&stream);
    }
    /* the fields that the local and the directory's record share */
    unsigned char shared[26] = {0};
    put(shared, 2, 20);
    put(shared + 4, 2, deflated ? 8 : 0);
    put(shared + 10, 4, (uint32_t)crc32(0, (const unsigned char *)text, (uInt)size));
    put(shared + 14, 4, (uint32_t)packed_size);
    put(shared + 18, 4, (uint32_t)size);
    put(shared + 22, 2, (uint32_t)name_size);

    unsigned char *d = p->directory + p->directory_used;
    put(d, 4, 0x02014b50);
    memcpy(d + 6, shared, sizeof shared);
    put(d + 42, 4, (uint32_t)p->used);
    memcpy(d + 46, name, name_size);
    p->directory_used += 46 + name_size;
    unsigned char *l = p->bytes + p->used;
    put(l, 4, 0x04034b50);
    memcpy(l + 4, shared, sizeof shared);
    memcpy(l + 30, name, name_size);
    memcpy(l + 30 + name_size, packed, packed_size);
    p->used += 30 + name_size + packed_size;
    p->files++;
}

static void close_packing(packing *p)
{
    unsigned char *end = p->bytes + p->used + p->directory_used;
    memcpy(p->bytes + p->used, p->directory, p->directory_used);
    put(end, 4, 0x06054b50);
    put(end + 8, 2, (uint32_t)p->files);
    put(end + 10, 2, (uint32_t)p->files);
    put(end + 12, 4, (uint32_t)p->directory_used);
    put(end + 16, 4, (uint32_t)p->used);
    p->used += p->directory_used + 22;
}

#define MODEL                                                                                      \
    "<mujoco><asset><mesh name='m' file='../meshes/m.obj'/></asset><worldbody><body name='b'>"     \
    "<freejoint/><geom type='mesh' mesh='m'/></body></worldbody></mujoco>"
#define OBJ "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

START_TEST(an_archive_is_a_model_with_its_files)
{
    for (int i = 0; i < 4; i++) {
        packing p = {0};
        pack(&p, "./meshes/m.obj", OBJ, i % 2 == 0);
        pack(&p, i < 2 ? "robot/robot.xml" : "robot/model.xml", MODEL, i % 2 == 1);
        close_packing(&p);
        const mjcf_file files[] = {{"some/robot.mjz", p.bytes, p.used}, {NULL, NULL, 0}};
        mjcf_case c;
        TEST_OK(mjcf_load_files(files, &c), &c.error);
        TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 1000.0 / 6, 1e-12);
        mjcf_free(&c);
    }
    /* files come from the archive alone, and messages say which */
    packing p = {0};
    pack(&p, "model.xml", MODEL, true);
    close_packing(&p);
    const mjcf_file files[] = {
        {"robot.zip", p.bytes, p.used}, {"meshes/m.obj", OBJ, sizeof OBJ - 1}, {NULL, NULL, 0}};
    mjcf_case c;
    TEST_STATUS(mjcf_load_files(files, &c), TB_NOT_FOUND, NULL);
    ck_assert_msg(strncmp(c.error.message, "robot.zip/model.xml:1: mesh 'm': ", 33) == 0, "%s",
                  c.error.message);
}
END_TEST

START_TEST(damaged_archives_are_refused)
{
    packing good = {0};
    pack(&good, "robot.xml", MODEL, true);
    close_packing(&good);
    const size_t directory = good.used - 22 - good.directory_used;
    const struct {
        size_t at;
        unsigned char to;
        tb_status status;
        const char *words;
    } CASES[] = {
        {50, 0xff, TB_DATA_LOSS, "not what was packed"}, /* in the packed bytes */
        {directory + 8, 1, TB_UNSUPPORTED, "encrypted"}, /* a flag */
        {directory + 10, 12, TB_UNSUPPORTED, "packed by method 12"},
        {directory + 43, 0xff, TB_DATA_LOSS, "lies outside of it"}, /* where its bytes are */
        {directory + 28, 0xff, TB_DATA_LOSS, "directory ends early"},
        {good.used - 18, 1, TB_UNSUPPORTED, "several parts"},
        {good.used - 6, 0xff, TB_DATA_LOSS, "directory lies outside"},
        {good.used - 22, 0, TB_DATA_LOSS, "no end record"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        packing p = good;
        p.bytes[CASES[i].at] = CASES[i].to;
        const mjcf_file files[] = {{"robot.mjz", p.bytes, p.used}, {NULL, NULL, 0}};
        mjcf_case c;
        TEST_STATUS(mjcf_load_files(files, &c), CASES[i].status, &c.error);
        ck_assert_msg(strstr(c.error.message, CASES[i].words) != NULL, "%s", c.error.message);
    }
    packing other = {0};
    pack(&other, "hand.xml", MODEL, false);
    close_packing(&other);
    const mjcf_file files[] = {{"robot.mjz", other.bytes, other.used}, {NULL, NULL, 0}};
    mjcf_case c;
    TEST_STATUS(mjcf_load_files(files, &c), TB_NOT_FOUND, NULL);
    ck_assert(strstr(c.error.message, "neither robot.xml nor model.xml") != NULL);
}
END_TEST

TEST_MAIN(collada_scenes_put_geometries_in_their_places, collada_that_makes_no_sense_is_refused,
          msh_files_are_checked_as_they_are_read, an_archive_is_a_model_with_its_files,
          damaged_archives_are_refused)
