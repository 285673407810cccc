/* Height fields from files: see height_file.h. */
#include "model/import/mesh/height_file.h"

#include "base/little_endian.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 8, MESSAGE_SIZE = 128 };

tb_status tb_heights_parse_binary(const tb_bytes *bytes, const char *file, int32_t *rows,
                                  int32_t *columns, double **heights, tb_error *error)
{
    *heights = NULL;
    *rows = bytes->size >= HEADER_BYTES ? tb_read_i32(bytes->base) : 0;
    *columns = bytes->size >= HEADER_BYTES ? tb_read_i32(bytes->base + 4) : 0;
    if (*rows < 2 || *columns < 2 || *rows > TB_HEIGHTS_LIMIT / *columns ||
        bytes->size != HEADER_BYTES + 4 * (size_t)*rows * (size_t)*columns)
        return tb_fail_file(error, TB_DATA_LOSS, file, 0, "file",
                            "no height field: %zu bytes do not fit %d rows by %d columns",
                            bytes->size, (int)*rows, (int)*columns);
    const size_t count = (size_t)*rows * (size_t)*columns;
    double *read = malloc(count * sizeof *read);
    if (read == NULL) return tb_fail_memory(error, count * sizeof *read, "a height field");
    for (size_t i = 0; i < count; i++) {
        const int32_t bits = tb_read_i32(bytes->base + HEADER_BYTES + 4 * i);
        float height;
        memcpy(&height, &bits, sizeof height);
        read[i] = (double)height;
        if (isfinite(read[i])) continue;
        free(read);
        return tb_fail_file(error, TB_INVALID_ARGUMENT, file, 0, "file", "height %zu is not finite",
                            i);
    }
    *heights = read;
    return TB_OK;
}

/* ---- PNG ---- */

/* One reading of an image. libpng leaves by longjmp, so all that must survive lives here. */
typedef struct png_reading {
    const unsigned char *at;
    size_t left;
    unsigned char *pixels; /* height x row_bytes */
    png_bytep *rows;
    size_t row_bytes;
    int32_t width, height, channels;
    bool too_large, no_memory;
    char message[MESSAGE_SIZE];
} png_reading;

static void on_error(png_structp png, png_const_charp message)
{
    png_reading *r = png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", message);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void on_read(png_structp png, png_bytep bytes, size_t count)
{
    png_reading *r = png_get_io_ptr(png);
    if (count > r->left) png_error(png, "the file ends early");
    memcpy(bytes, r->at, count);
    r->at += count;
    r->left -= count;
}

/* Reads header and pixels as bytes, one to three a pixel. May leave by longjmp. */
static void read_pixels(png_structp png, png_infop info, png_reading *r)
{
    png_set_read_fn(png, r, on_read);
    png_read_info(png, info);
    const png_uint_32 width = png_get_image_width(png, info);
    const png_uint_32 height = png_get_image_height(png, info);
    r->too_large = width < 1 || height < 1 || width > TB_HEIGHTS_LIMIT / height;
    if (r->too_large) return;
    png_set_expand(png); /* palettes to colours, few bits to eight */
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    r->width = (int32_t)width;
    r->height = (int32_t)height;
    r->channels = png_get_channels(png, info);
    r->row_bytes = png_get_rowbytes(png, info);
    r->pixels = calloc((size_t)height, r->row_bytes);
    r->rows = malloc((size_t)height * sizeof *r->rows);
    r->no_memory = r->pixels == NULL || r->rows == NULL;
    if (r->no_memory) return;
    for (size_t i = 0; i < (size_t)height; i++) r->rows[i] = r->pixels + i * r->row_bytes;
    png_read_image(png, r->rows);
}

/* False where libpng refused the image. */
static bool run_libpng(png_reading *r)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    bool good = info != NULL;
    r->no_memory = !good;
    if (good && setjmp(png_jmpbuf(png)) == 0)
        read_pixels(png, info, r);
    else
        good = false;
    png_destroy_read_struct(&png, &info, NULL);
    return good;
}

tb_status tb_heights_parse_png(const tb_bytes *bytes, const char *file, int32_t *rows,
                               int32_t *columns, double **heights, tb_error *error)
{
    tb_status status = TB_OK;
    png_reading *r = calloc(1, sizeof *r);
    *heights = NULL;
    if (r == NULL) return tb_fail_memory(error, sizeof *r, "an image");
    r->at = bytes->base;
    r->left = bytes->size;
    const bool good = run_libpng(r);
    if (r->no_memory) {
        status = tb_fail_memory(error, bytes->size, "an image");
    } else if (!good) {
        status = tb_fail_file(error, TB_DATA_LOSS, file, 0, "file", "no PNG image: %s",
                              r->message[0] != 0 ? r->message : "it is damaged");
    } else if (r->too_large) {
        status = tb_fail_file(error, TB_RESOURCE_EXHAUSTED, file, 0, "file",
                              "the image has more than %d pixels", TB_HEIGHTS_LIMIT);
    } else if (r->width < 2 || r->height < 2) {
        status = tb_fail_file(error, TB_INVALID_ARGUMENT, file, 0, "file",
                              "an image of %d by %d pixels is no height field", (int)r->width,
                              (int)r->height);
    }
    if (status != TB_OK) goto done;
    const size_t width = (size_t)r->width, height = (size_t)r->height;
    *heights = malloc(width * height * sizeof **heights);
    if (*heights == NULL) {
        status = tb_fail_memory(error, width * height * sizeof **heights, "a height field");
        goto done;
    }
    for (size_t row = 0; row < height; row++)
        for (size_t i = 0; i < width; i++)
            (*heights)[row * width + i] = r->rows[height - 1 - row][i * (size_t)r->channels];
    *rows = r->height;
    *columns = r->width;
done:
    free(r->rows);
    free(r->pixels);
    free(r);
    return status;
}
