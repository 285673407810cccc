/* tribo bench betz|poulsen|nuetzi|goteman|litven: options, and which tables are run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "bench/bench_thesis.h"
#include "common/cli.h"
#include "common/interrupt.h"
#include "common/plot.h"
#include "bench/thesis.h"

static const struct {
    const char *name;
    const thesis_entry *tables;
} THESES[] = {{"betz", thesis_betz},
              {"poulsen", thesis_poulsen},
              {"nuetzi", thesis_nuetzi},
              {"goteman", thesis_goteman},
              {"litven", thesis_litven}};
enum { THESES_COUNT = sizeof THESES / sizeof THESES[0] };

static const args_command COMMAND = {
    .name = "bench",
    .operands = "betz|poulsen|nuetzi|goteman|litven",
    .description = "Runs a thesis's tables again and prints them beside its figures. Without "
                   "--table all run that take\nseconds; --table help lists them.\n",
    .examples = "  tribo bench poulsen --table counts\n"
                "  tribo bench betz --table group --scene betz_group_525 --json\n"
                "  tribo bench betz --table slide --plot slide.svg --server 127.0.0.1:7410\n",
    .minimum_operands = 1,
    .maximum_operands = 1};

bool bench_thesis_is(const char *name)
{
    for (int i = 0; name != NULL && i < THESES_COUNT; i++)
        if (strcmp(name, THESES[i].name) == 0) return true;
    return false;
}

static tb_status run_table(const char *bench, const thesis_entry *entry, const thesis_options *o,
                           tb_error *error)
{
    thesis_table *table = calloc(1, sizeof *table);
    if (table == NULL) return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
    table->bench = bench;
    table->name = entry->name;
    table->title = entry->summary;
    table->row_key = "scene";
    tb_status status = entry->fill(o, table, error);
    if (table->rows > 0) thesis_print(table, o);
    if (status == TB_OK && table->rows == 0 && o->table != NULL && o->scene != NULL)
        status = cli_fail(error, TB_NOT_FOUND, "", 0, NULL, "table '%s' has no row of scene '%s'",
                          entry->name, o->scene);
    if (status == TB_OK && o->plot != NULL) status = thesis_draw(table, o->plot, error);
    if (status == TB_OK && (o->server || o->store != NULL)) status = thesis_record(table, o, error);
    thesis_free(table);
    free(table);
    return status;
}

static int list_tables(const thesis_entry *tables)
{
    for (const thesis_entry *e = tables; e->name != NULL; e++)
        printf("%-14s %s%s\n", e->name, e->summary, e->slow ? " (only when it is named)" : "");
    return CLI_OK;
}

static int run_tables(const char *bench, const thesis_entry *tables, const thesis_options *o)
{
    const char *names[THESIS_ROWS] = {NULL};
    bool found = o->table == NULL;
    int count = 0;
    for (const thesis_entry *e = tables; e->name != NULL; e++) names[count++] = e->name;
    for (int i = 0; i < count && o->table != NULL; i++)
        found = found || strcmp(names[i], o->table) == 0;
    if (!found) {
        const char *nearest = args_nearest(o->table, names);
        args_complain(COMMAND.name, "%s has no table '%s'; did you mean '%s'?", bench, o->table,
                      nearest != NULL ? nearest : names[0]);
        return CLI_USAGE;
    }
    tb_error error = {0};
    tb_status status = TB_OK;
    interrupt_watch();
    for (const thesis_entry *e = tables; e->name != NULL && status == TB_OK; e++)
        if (o->table != NULL ? strcmp(o->table, e->name) == 0 : !e->slow)
            status = run_table(bench, e, o, &error);
    if (status == TB_CANCELLED)
        cli_fail(&error, TB_CANCELLED, "", 0, NULL,
                 "interrupted: the rest of the table is missing");
    if (status != TB_OK) cli_complain(&error);
    return cli_exit_code(status);
}

int command_bench_thesis(int argc, char **argv)
{
    static const char *const BACKENDS[] = {"cpu", "gpu", "auto", NULL};
    static const char *const SETS[] = {"swept", "recalled", "empty", NULL};
    thesis_options o = {.backend = TB_BACKEND_CPU};
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&o.remote, connection);
    const args_option options[] = {
        {"table", "NAME", "which table (all quick ones); help lists them", ARGS_TEXT, &o.table, 0,
         0, NULL},
        {"scene", "NAME", "only this named scene", ARGS_TEXT, &o.scene, 0, 0, NULL},
        {"solver", "NAME", "in the place of the table's own", ARGS_TEXT, &o.solver, 0, 0, NULL},
        {"steps", "N", "of each scene (as the thesis has)", ARGS_INTEGER, &o.steps, 1, 1e9, NULL},
        {"contacts", "N", "of Nützi's random systems (500); variables of Litven's (8000)",
         ARGS_INTEGER, &o.contacts, 1, 20000, NULL},
        {"threads", "N", "of one solve (all processors)", ARGS_INTEGER, &o.threads, 0, 4096, NULL},
        {"repeats", "N", "of every time (3)", ARGS_INTEGER, &o.repeats, 1, 1000, NULL},
        {"backend", "NAME", "where it is run (cpu)", ARGS_CHOICE, &o.backend, 0, 0, BACKENDS},
        {"sets", "NAME", "first working sets of Litven's nine cylinders (swept)", ARGS_CHOICE,
         &o.sets, 0, 0, SETS},
        {"json", NULL, "one JSON object a row, with the thesis's figures and the commit", ARGS_FLAG,
         &o.json, 0, 0, NULL},
        {"plot", "FILE.svg", "draw the table", ARGS_TEXT, &o.plot, 0, 0, NULL},
        {"store", "DATA", "record the rows in a daemon's data folder", ARGS_TEXT, &o.store, 0, 0,
         NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {
        {"options", options}, {"a daemon that records the rows", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    o.server = o.remote.address != NULL;
    if (o.repeats == 0) o.repeats = 3;

    tb_error error = {0};
    if (o.plot != NULL && plot_check_path(o.plot, &error) != TB_OK) {
        args_complain(COMMAND.name, "%s", error.message);
        return CLI_USAGE;
    }
    if (o.plot != NULL && o.table == NULL) {
        args_complain(COMMAND.name, "--plot draws one table: --table NAME is missing");
        return CLI_USAGE;
    }
    for (int i = 0; i < THESES_COUNT; i++) {
        if (strcmp(argv[1], THESES[i].name) != 0) continue;
        if (o.table != NULL && strcmp(o.table, "help") == 0) return list_tables(THESES[i].tables);
        return run_tables(THESES[i].name, THESES[i].tables, &o);
    }
    args_complain(COMMAND.name, "no thesis '%s'", argv[1]);
    return CLI_USAGE;
}
