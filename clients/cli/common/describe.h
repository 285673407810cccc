/* Shell completions and manual pages from the tables of options: args_parse calls another printer in
 * place of its help, once for every command. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include "common/args.h"

/* A command as the list of all names it. */
typedef struct cli_subcommand {
    const char *name, *summary;
    int (*function)(int argc, char **argv);
} cli_subcommand;

/* Prints the completions of a shell ("bash", "zsh", "fish") for `count` commands. */
void cli_print_completion(const char *shell, const cli_subcommand *, int count);
/* Prints the manual page of one command, or (NULL) of `tribo` itself, as roff. */
void cli_print_manual(const cli_subcommand *command, const cli_subcommand *all, int count);

#endif
