/* tribo scene: named scenes as MJCF. */
#include <stdio.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/files.h"
#include "common/json.h"

enum { MOST_SCENES = 512 };

static const args_command COMMAND = {
    .name = "scene",
    .operands = "NAME | list",
    .description = "Writes a named scene as MJCF, or as XML of soft bodies: the scenes of README "
                   "and those of the theses "
                   "whose methods Tribod has.\n'list' tells the names.\n",
    .examples = "  tribo scene list\n"
                "  tribo scene poulsen_grid_8 --out grid.xml && tribo run grid.xml --steps 10\n"
                "  tribo scene incline --out incline.xml && tribo run incline.xml --time 2\n",
    .minimum_operands = 1,
    .maximum_operands = 1};

static int print_list(bool json)
{
    tb_named_scene scene;
    for (int32_t i = 0; tb_named_scene_describe(i, &scene); i++) {
        if (!json) {
            printf("%-32s %s (%s)\n", scene.name, scene.summary, scene.source);
            continue;
        }
        json_t *object = json_object();
        json_object_set_new(object, "scene", json_text(scene.name));
        json_object_set_new(object, "summary", json_text(scene.summary));
        json_object_set_new(object, "source", json_text(scene.source));
        json_print(stdout, object);
    }
    return CLI_OK;
}

/* Complains of a name that is none, with the nearest that is one. */
static int refuse_name(const char *name)
{
    const char *names[MOST_SCENES + 1] = {NULL};
    tb_named_scene scene;
    for (int32_t i = 0; i < MOST_SCENES && tb_named_scene_describe(i, &scene); i++)
        names[i] = scene.name;
    const char *nearest = args_nearest(name, names);
    if (nearest != NULL)
        args_complain(COMMAND.name, "no scene '%s'; did you mean '%s'?", name, nearest);
    else
        args_complain(COMMAND.name, "no scene '%s'; 'tribo scene list' tells their names", name);
    return CLI_USAGE;
}

static tb_status write_scene(const unsigned char *text, size_t size, const char *path,
                             tb_error *error)
{
    FILE *file = NULL;
    const tb_status status = files_create(path, &file, error);
    if (status != TB_OK) return status;
    fwrite(text, 1, size, file);
    return files_close(file, path, error);
}

int command_scene(int argc, char **argv)
{
    const char *out = NULL;
    bool json = false;
    const args_option options[] = {
        {"out", "FILE", "where to write it (stdout)", ARGS_TEXT, &out, 0, 0, NULL},
        {"json", NULL, "one JSON object: name, and either the file or the text", ARGS_FLAG, &json,
         0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    if (strcmp(argv[1], "list") == 0) return print_list(json);

    tb_error error = {0};
    unsigned char *text = NULL;
    size_t size = 0;
    tb_status status = tb_named_scene_mjcf(argv[1], &text, &size, &error);
    if (status == TB_NOT_FOUND) return refuse_name(argv[1]);
    if (status == TB_OK && (out != NULL || !json))
        status = write_scene(text, size, out != NULL ? out : "-", &error);
    if (status == TB_OK && json) {
        json_t *object = json_object();
        json_object_set_new(object, "scene", json_text(argv[1]));
        json_object_set_new(object, "bytes", json_integer((json_int_t)size));
        if (out != NULL)
            json_object_set_new(object, "file", json_text(out));
        else
            json_object_set_new(object, "mjcf", json_text((const char *)text));
        json_print(stdout, object);
    }
    if (status != TB_OK) cli_complain(&error);
    tb_bytes_destroy(text);
    return cli_exit_code(status);
}
