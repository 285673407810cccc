/* The command `tribo`: declarations shared by its parts.
 *
 * The command uses libtribo through tribo.h alone, as any other caller does. Each subcommand is a
 * function with main's signature that returns an exit code. */
#ifndef CLI_H
#define CLI_H

#include "tribo.h"

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* Exit codes, as documented by every --help. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,       /* a file could not be read, written or understood */
    CLI_USAGE = 2,        /* the command line makes no sense */
    CLI_UNSOLVED = 3,     /* diverged, or the tolerance was not reached */
    CLI_INTERRUPTED = 130 /* Ctrl-C; results until then are reported */
};

int command_run(int argc, char **argv);
int command_solve(int argc, char **argv);
int command_info(int argc, char **argv);
int command_export(int argc, char **argv);
int command_function(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_scene(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_grasp(int argc, char **argv);
int command_hand(int argc, char **argv);
int command_sessions(int argc, char **argv);
int command_runs(int argc, char **argv);
int command_jobs(int argc, char **argv);
int command_load(int argc, char **argv);
int command_top(int argc, char **argv);
int command_backup(int argc, char **argv);

/* The commit that the command was built from. */
const char *cli_commit(void);

/* The exit code that a status deserves. */
int cli_exit_code(tb_status status);

/* Prints an error on stderr: "tribo: MESSAGE". */
void cli_complain(const tb_error *error);

/* Fills an error whose message begins "FILE: " (or "FILE:LINE: " where line > 0) and returns the
 * status. `field` may be NULL. */
tb_status cli_fail(tb_error *error, tb_status status, const char *file, int line, const char *field,
                   const char *format, ...) CLI_PRINTF(6, 7);

#endif
