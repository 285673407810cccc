/* Height fields from files, read from memory into a grid of numbers. */
#ifndef TB_HEIGHT_FILE_H
#define TB_HEIGHT_FILE_H

#include "base/base.h"
#include "base/file.h"

enum { TB_HEIGHTS_LIMIT = 1 << 24 }; /* most points of one field */

/* MuJoCo's own format: rows and columns (int32), then rows x columns float32, all little-endian,
 * the first row at the smallest y. DATA_LOSS if the size does not fit; INVALID_ARGUMENT for a
 * height that is not finite. *heights (rows x columns, in the file's order) belongs to the caller.
 * */
tb_status tb_heights_parse_binary(const tb_bytes *bytes, const char *file, int32_t *rows,
                                  int32_t *columns, double **heights, tb_error *error);

/* A PNG image (libpng): brightness 0 to 255, of a coloured one its red; 16 bits are cut to 8, alpha
 * is ignored. The image's last row is the field's first, at the smallest y. DATA_LOSS for an
 * image that is damaged, RESOURCE_EXHAUSTED beyond TB_HEIGHTS_LIMIT points. *heights (rows x
 * columns) is the caller's to free. */
tb_status tb_heights_parse_png(const tb_bytes *bytes, const char *file, int32_t *rows,
                               int32_t *columns, double **heights, tb_error *error);

#endif
