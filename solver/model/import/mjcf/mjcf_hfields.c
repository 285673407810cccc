/* MJCF height fields: from a file (an image or MuJoCo's own format) or from the document. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/import/import.h"
#include "model/import/mesh/height_file.h"
#include "model/import/mjcf/mjcf.h"

enum { PATH_SIZE = 4096 };

static const mjcf_words HFIELD = {.used = "name file nrow ncol size elevation content_type"};

tb_status mjcf_read_hfield(mjcf *m, const xmlNode *node)
{
    mjcf_hfield hfield = {.node = node};
    MJCF_TRY(mjcf_check_attributes(m, node, &HFIELD));
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    MJCF_TRY(mjcf_asset_name(m, node, &hfield.name));
    MJCF_TRY(mjcf_enter_name(m, node, TB_HANDLE_HEIGHT_FIELD, hfield.name, m->number_of_hfields));
    MJCF_TRY(mjcf_grow(m, (void **)&m->hfields, m->number_of_hfields, &m->hfield_capacity,
                       sizeof *m->hfields));
    m->hfields[m->number_of_hfields++] = hfield;
    return TB_OK;
}

static bool is_image(const char *file, const char *type)
{
    const char *dot = strrchr(file, '.');
    return type != NULL ? strcmp(type, "image/png") == 0
                        : dot != NULL && strcasecmp(dot, ".png") == 0;
}

static tb_status parse_hfield_file(mjcf *m, const xmlNode *node, int32_t *rows, int32_t *columns,
                                   double **heights)
{
    char path[PATH_SIZE];
    tb_bytes file = {0};
    tb_error refusal = {0};
    const char *name = tb_xml_attribute(node, "file");
    const char *type = tb_xml_attribute(node, "content_type");
    if (type != NULL && !tb_xml_in_words("image/png image/vnd.mujoco.hfield", type))
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "content_type",
                           "content_type \"%.80s\" is no height field: use image/png or "
                           "image/vnd.mujoco.hfield",
                           type);
    MJCF_TRY(mjcf_path(m, node, m->mesh_directory, name, path, sizeof path));
    tb_status status = tb_import_read(m->options, path, m->options->file_limit, &file, &refusal);
    if (status == TB_OK)
        status = is_image(name, type)
                     ? tb_heights_parse_png(&file, path, rows, columns, heights, &refusal)
                     : tb_heights_parse_binary(&file, path, rows, columns, heights, &refusal);
    tb_bytes_free(&file);
    return status == TB_OK ? TB_OK : mjcf_refused(m, node, &refusal);
}

/* In the document the first row lies at the largest y. */
static tb_status parse_hfield_text(mjcf *m, const xmlNode *node, int32_t *rows, int32_t *columns,
                                   double **heights)
{
    double *elevation = NULL;
    int32_t count = 0;
    MJCF_TRY(tb_xml_integer(node, "nrow", rows, m->error));
    MJCF_TRY(tb_xml_integer(node, "ncol", columns, m->error));
    if (*rows < 2 || *columns < 2 || *rows > TB_HEIGHTS_LIMIT / *columns)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, *rows < 2 ? "nrow" : "ncol",
                           "%d rows by %d columns are not 2 by 2 to %d points", (int)*rows,
                           (int)*columns, TB_HEIGHTS_LIMIT);
    const size_t total = (size_t)*rows * (size_t)*columns;
    MJCF_TRY(tb_xml_number_list(node, "elevation", &elevation, &count, m->error));
    tb_status status = TB_OK;
    if (elevation != NULL && (size_t)count != total)
        status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "elevation",
                             "elevation has %d numbers, not %zu", (int)count, total);
    if (status == TB_OK) {
        *heights = calloc(total, sizeof **heights);
        if (*heights == NULL) status = tb_fail_memory(m->error, total, "a height field");
    }
    const size_t width = (size_t)*columns;
    for (size_t r = 0; status == TB_OK && elevation != NULL && r < (size_t)*rows; r++)
        memcpy(*heights + ((size_t)*rows - 1 - r) * width, elevation + r * width,
               width * sizeof **heights);
    free(elevation);
    return status;
}

static tb_status load_hfield(mjcf *m, mjcf_hfield *hfield, double **heights)
{
    const xmlNode *node = hfield->node;
    double size[4] = {0};
    mjcf_enter(m, node);
    int32_t rows = 0, columns = 0;
    if (tb_xml_attribute(node, "size") == NULL)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "size",
                           "attribute 'size' is missing");
    MJCF_TRY(tb_xml_numbers(node, "size", 4, 4, size, NULL, m->error));
    for (int i = 0; i < 4; i++)
        if (!(size[i] > 0))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "size",
                               "size %d is %g, not positive", i + 1, size[i]);
    if (tb_xml_attribute(node, "file") != NULL)
        MJCF_TRY(parse_hfield_file(m, node, &rows, &columns, heights));
    else
        MJCF_TRY(parse_hfield_text(m, node, &rows, &columns, heights));

    /* elevations are taken relative to their range */
    const size_t count = (size_t)rows * (size_t)columns;
    double lowest = (*heights)[0], highest = lowest;
    for (size_t i = 0; i < count; i++) {
        lowest = fmin(lowest, (*heights)[i]);
        highest = fmax(highest, (*heights)[i]);
    }
    const double range = highest > lowest ? highest - lowest : 1;
    for (size_t i = 0; i < count; i++) (*heights)[i] = size[2] * (((*heights)[i] - lowest) / range);

    tb_error refusal = {0};
    tb_height_field_def def = tb_height_field_defaults();
    def.name = hfield->name;
    def.heights = *heights;
    def.rows = rows;
    def.columns = columns;
    def.half_x = size[0];
    def.half_y = size[1];
    def.base = size[3];
    if (tb_scene_add_height_field(m->scene, &def, &hfield->handle, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    hfield->loaded = true;
    return TB_OK;
}

tb_status mjcf_use_hfield(mjcf *m, const xmlNode *node, const char *name, tb_handle *handle)
{
    const int32_t index = tb_names_find(&m->names, TB_HANDLE_HEIGHT_FIELD, name);
    if (index < 0)
        return tb_xml_fail(m->error, TB_NOT_FOUND, node, "hfield",
                           "there is no height field '%.100s'", name);
    if (!m->hfields[index].loaded) {
        double *heights = NULL;
        const tb_status status = load_hfield(m, &m->hfields[index], &heights);
        free(heights);
        if (status != TB_OK) return status;
    }
    *handle = m->hfields[index].handle;
    return TB_OK;
}
