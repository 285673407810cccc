/* tribo info --overlaps: the pairs of shapes that overlap, as a table and as JSON. */
#ifndef CLI_OVERLAP_LIST_H
#define CLI_OVERLAP_LIST_H

#include <jansson.h>

#include "tribo.h"

/* Depths are millimetres in the table, metres in JSON. */
void overlap_list_print(const tb_model *model, const tb_overlap *overlaps, int32_t count);
json_t *overlap_list_json(const tb_model *model, const tb_overlap *overlaps, int32_t count);
/* FAILED_PRECONDITION that counts the pairs. */
tb_status overlap_list_refuse(const char *path, int32_t count, tb_error *error);

#endif
