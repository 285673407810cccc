/* tribo backup: a copy of a daemon's store while it is in use. */
#include <stdio.h>
#include <sys/stat.h>

#include "db/db.h"
#include "common/args.h"
#include "common/cli.h"
#include "common/json.h"
#include "common/progress.h"

static const args_command COMMAND = {
    .name = "backup",
    .operands = "DATA FILE",
    .description =
        "Copies the store in a daemon's data folder into a new file, whether or not the daemon\n"
        "runs. The copy is whole and consistent; to use it, put it into a folder as tribo.db.\n",
    .examples = "  tribo backup /var/lib/tribod /backup/tribo-$(date +%F).db\n",
    .minimum_operands = 2,
    .maximum_operands = 2};

static void show(void *context, double fraction)
{
    progress_update(context, fraction);
}

int command_backup(int argc, char **argv)
{
    bool quiet = false, json = false;
    const args_option own[] = {
        {"quiet", NULL, "no progress bar", ARGS_FLAG, &quiet, 0, 0, NULL},
        {"json", NULL, "print one JSON object", ARGS_FLAG, &json, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", own}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;

    tb_error error = {0};
    progress bar = progress_begin("copying", 1, quiet || json);
    const tb_status status = db_backup_file(argv[1], argv[2], show, &bar, &error);
    progress_end(&bar);
    struct stat copy = {0};
    if (status != TB_OK) {
        cli_complain(&error);
    } else if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "path", json_text(argv[2]));
        json_object_set_new(object, "size",
                            json_integer(stat(argv[2], &copy) == 0 ? copy.st_size : 0));
        json_print(stdout, object);
    } else if (!quiet)
        printf("%s\n", argv[2]);
    return cli_exit_code(status);
}
