/* Names of bodies, joints and shapes for display. See names.h. */
#include "common/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"

/* Number of the model's objects of a kind, and the default name of one without a name. */
static int32_t kind_count(const tb_model *model, tb_handle_kind kind, const char **word)
{
    const tb_model_counts counts = tb_model_count(model);
    switch (kind) {
    case TB_HANDLE_BODY: *word = "body"; return counts.bodies;
    case TB_HANDLE_JOINT: *word = "joint"; return counts.joints;
    case TB_HANDLE_SHAPE: *word = "shape"; return counts.shapes;
    case TB_HANDLE_ACTUATOR: *word = "actuator"; return counts.actuators;
    case TB_HANDLE_KEYFRAME: *word = "keyframe"; return counts.keyframes;
    default: *word = "thing"; return 0;
    }
}

tb_status name_list_create(const tb_model *model, tb_handle_kind kind, name_list *list,
                           tb_error *error)
{
    const char *word = "";
    const int32_t count = kind_count(model, kind, &word);
    list->count = 0;
    list->names = calloc((size_t)count + 1, sizeof *list->names);
    if (list->names == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for names");
    for (int32_t i = 0; i < count; i++) {
        const char *given = tb_model_thing_name(model, kind, i);
        char made[64];
        if (given[0] == '\0') {
            const bool world = kind == TB_HANDLE_BODY && i == 0;
            const int number = (int)(kind == TB_HANDLE_BODY ? i : i + 1);
            snprintf(made, sizeof made, "%s%d", word, number);
            if (world) snprintf(made, sizeof made, "world");
            /* another object may have this very name */
            while (tb_model_find(model, kind, made) >= 0 && strlen(made) < sizeof made - 1)
                strcat(made, "_");
            given = made;
        }
        list->names[i] = strdup(given);
        if (list->names[i] == NULL) {
            name_list_free(list);
            return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory for names");
        }
        list->count = i + 1;
    }
    return TB_OK;
}

void name_list_free(name_list *list)
{
    for (int32_t i = 0; i < list->count; i++) free(list->names[i]);
    free(list->names);
    list->names = NULL;
    list->count = 0;
}

void name_list_join(const name_list *list, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    if (list->count == 0) snprintf(text, size, "none");
    for (int32_t i = 0; i < list->count; i++) {
        const size_t needed = strlen(list->names[i]) + 2;
        if (used + needed + sizeof ", ..." > size) {
            snprintf(text + used, size - used, ", ...");
            return;
        }
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ", ", list->names[i]);
    }
}

void name_write_csv(FILE *file, const char *name, const char *suffix)
{
    const bool quoted = strpbrk(name, ",\"\n\r") != NULL;
    fputc(',', file);
    if (quoted) fputc('"', file);
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '"') fputc('"', file);
        fputc(*c, file);
    }
    fputs(suffix, file);
    if (quoted) fputc('"', file);
}
