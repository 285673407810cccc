/* Files of grasp poses: CSV for spreadsheets, JSON for programs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "grasp/grasp.h"
#include "common/json.h"

static const size_t FILE_LIMIT = (size_t)256 << 20;
enum { COLUMNS = 9, POSES_LIMIT = 10000000 };

typedef struct pose_list {
    tb_grasp_pose *poses;
    int32_t count, capacity;
} pose_list;

static tb_grasp_pose *add(pose_list *list, const char *path, tb_error *error)
{
    if (list->count == POSES_LIMIT) {
        cli_fail(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL, "more than %d poses", POSES_LIMIT);
        return NULL;
    }
    if (list->count == list->capacity) {
        const int32_t capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        tb_grasp_pose *grown = realloc(list->poses, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            cli_fail(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL, "no memory for %d poses",
                     (int)capacity);
            return NULL;
        }
        list->poses = grown;
        list->capacity = capacity;
    }
    list->poses[list->count] = tb_grasp_pose_defaults();
    return &list->poses[list->count++];
}

/* ---- CSV ---- */

static const char *const NAMES[COLUMNS] = {"x", "y", "z", "qw", "qx", "qy", "qz", "force", "name"};
enum { NAME_COLUMN = COLUMNS - 1 };

static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t') text++;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL) text[--n] = '\0';
    return text;
}

/* Which of NAMES each column is; -1: none of them. */
static tb_status read_header(char *line, const char *path, int *columns, int *count,
                             tb_error *error)
{
    bool seen[COLUMNS] = {false};
    *count = 0;
    for (char *cell = line, *next; cell != NULL; cell = next) {
        next = strchr(cell, ',');
        if (next != NULL) *next++ = '\0';
        cell = trim(cell);
        int which = -1;
        for (int i = 0; i < COLUMNS; i++)
            if (strcmp(cell, NAMES[i]) == 0) which = i;
        if (which < 0)
            return cli_fail(error, TB_INVALID_ARGUMENT, path, 1, "header",
                            "column '%.40s' is none of name, x, y, z, qw, qx, qy, qz, force", cell);
        if (seen[which] || *count == COLUMNS)
            return cli_fail(error, TB_INVALID_ARGUMENT, path, 1, "header",
                            "column '%.40s' comes twice", cell);
        seen[which] = true;
        columns[(*count)++] = which;
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return cli_fail(error, TB_INVALID_ARGUMENT, path, 1, "header",
                        "columns x, y, z are needed");
    const int turns = seen[3] + seen[4] + seen[5] + seen[6];
    if (turns != 0 && turns != 4)
        return cli_fail(error, TB_INVALID_ARGUMENT, path, 1, "header",
                        "of qw, qx, qy, qz all are needed or none");
    return TB_OK;
}

static tb_status read_row(char *line, int number, const char *path, const int *columns, int count,
                          tb_grasp_pose *pose, tb_error *error)
{
    double *const targets[NAME_COLUMN] = {
        &pose->position[0],    &pose->position[1],    &pose->position[2],    &pose->orientation[0],
        &pose->orientation[1], &pose->orientation[2], &pose->orientation[3], &pose->force};
    int column = 0;
    for (char *cell = line, *next; cell != NULL; cell = next, column++) {
        next = strchr(cell, ',');
        if (next != NULL) *next++ = '\0';
        cell = trim(cell);
        if (column >= count)
            return cli_fail(error, TB_INVALID_ARGUMENT, path, number, NULL,
                            "more cells than the header has columns");
        const int which = columns[column];
        if (which == NAME_COLUMN) {
            pose->name = strdup(cell);
            if (pose->name == NULL)
                return cli_fail(error, TB_RESOURCE_EXHAUSTED, path, number, NULL, "no memory");
            continue;
        }
        char *end;
        *targets[which] = strtod(cell, &end);
        if (end == cell || *end != '\0' || !isfinite(*targets[which]))
            return cli_fail(error, TB_INVALID_ARGUMENT, path, number, NAMES[which],
                            "'%.40s' is no number", cell);
    }
    if (column < count)
        return cli_fail(error, TB_INVALID_ARGUMENT, path, number, NULL,
                        "%d cells, but the header has %d columns", column, count);
    return TB_OK;
}

static tb_status read_csv(char *text, const char *path, pose_list *list, tb_error *error)
{
    int columns[COLUMNS], count = 0, number = 0;
    tb_status status = TB_OK;
    for (char *line = text, *next; line != NULL && status == TB_OK; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        number++;
        if (trim(line)[0] == '\0') continue;
        if (count == 0) {
            status = read_header(line, path, columns, &count, error);
            continue;
        }
        tb_grasp_pose *pose = add(list, path, error);
        status = pose == NULL ? TB_RESOURCE_EXHAUSTED
                              : read_row(line, number, path, columns, count, pose, error);
    }
    return status;
}

/* ---- JSON ---- */

static tb_status read_array(const json_t *value, int32_t index, const char *field, size_t size,
                            double *numbers, const char *path, tb_error *error)
{
    if (value == NULL) return TB_OK;
    bool good = json_is_array(value) && json_array_size(value) == size;
    for (size_t i = 0; good && i < size; i++) {
        good = json_is_number(json_array_get(value, i));
        if (good) numbers[i] = json_number_value(json_array_get(value, i));
    }
    if (good) return TB_OK;
    return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, field,
                    "pose %d: %s is no list of %zu numbers", (int)index, field, size);
}

static tb_status read_object(const json_t *object, const char *path, pose_list *list,
                             tb_error *error)
{
    static const char *const KEYS[] = {"name", "position", "orientation", "force"};
    const int32_t index = list->count;
    const char *key;
    json_t *value;
    tb_grasp_pose *pose = add(list, path, error);
    if (pose == NULL) return TB_RESOURCE_EXHAUSTED;
    if (!json_is_object(object) || json_object_get(object, "position") == NULL)
        return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, "position",
                        "pose %d is no object with a position", (int)index);
    json_object_foreach((json_t *)object, key, value)
    {
        bool known = false;
        for (int i = 0; i < 4; i++) known = known || strcmp(key, KEYS[i]) == 0;
        if (!known)
            return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, key,
                            "pose %d: '%.40s' is none of name, position, orientation, force",
                            (int)index, key);
    }
    tb_status status = read_array(json_object_get(object, "position"), index, "position", 3,
                                  pose->position, path, error);
    if (status == TB_OK)
        status = read_array(json_object_get(object, "orientation"), index, "orientation", 4,
                            pose->orientation, path, error);
    const json_t *force = json_object_get(object, "force"), *name = json_object_get(object, "name");
    if (status == TB_OK && force != NULL && !json_is_number(force))
        status = cli_fail(error, TB_INVALID_ARGUMENT, path, 0, "force",
                          "pose %d: force is no number", (int)index);
    if (status == TB_OK && name != NULL && !json_is_string(name))
        status = cli_fail(error, TB_INVALID_ARGUMENT, path, 0, "name", "pose %d: name is no text",
                          (int)index);
    if (status != TB_OK) return status;
    if (force != NULL) pose->force = json_number_value(force);
    if (name != NULL) {
        pose->name = strdup(json_string_value(name));
        if (pose->name == NULL)
            return cli_fail(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL, "no memory");
    }
    return TB_OK;
}

static tb_status read_json(const char *text, size_t size, const char *path, pose_list *list,
                           tb_error *error)
{
    json_error_t why;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL)
        return cli_fail(error, TB_INVALID_ARGUMENT, path, why.line, NULL, "no JSON: %s", why.text);
    tb_status status = TB_OK;
    if (!json_is_array(root))
        status = cli_fail(error, TB_INVALID_ARGUMENT, path, 0, NULL, "the file is no JSON array");
    for (size_t i = 0; status == TB_OK && i < json_array_size(root); i++)
        status = read_object(json_array_get(root, i), path, list, error);
    json_decref(root);
    return status;
}

tb_status grasp_poses_read(const char *path, tb_grasp_pose **poses, int32_t *count, tb_error *error)
{
    char *text = NULL;
    size_t size = 0;
    pose_list list = {0};
    tb_status status = files_read(path, FILE_LIMIT, &text, &size, error);
    if (status == TB_OK)
        status = files_has_extension(path, ".json") ? read_json(text, size, path, &list, error)
                                                    : read_csv(text, path, &list, error);
    free(text);
    if (status == TB_OK && list.count == 0)
        status = cli_fail(error, TB_INVALID_ARGUMENT, path, 0, NULL, "the file has no poses");
    *poses = list.poses;
    *count = list.count;
    return status;
}
