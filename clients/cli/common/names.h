/* Names for display: the model's name of an object, or "body1" if it has none. */
#ifndef CLI_NAMES_H
#define CLI_NAMES_H

#include <stdio.h>

#include "tribo.h"

typedef struct name_list {
    char **names; /* `count` names, then NULL: a list that args_nearest understands */
    int32_t count;
} name_list;

/* Names of all things of a kind by their compiled index, each different from the others. The world
 * is body 0, so that the first body is "body1"; other kinds count from 1 too. */
tb_status name_list_create(const tb_model *model, tb_handle_kind kind, name_list *list,
                           tb_error *error);
void name_list_free(name_list *list);
/* The names joined by ", ", cut with "..." where they do not fit. */
void name_list_join(const name_list *list, char *text, size_t size);
/* A field of CSV of its own, behind a comma; name and suffix may hold commas and quotes (RFC 4180). */
void name_write_csv(FILE *file, const char *name, const char *suffix);

#endif
