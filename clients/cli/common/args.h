/* Command lines: a table of options drives parsing, help and error messages. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum args_kind {
    ARGS_FLAG,    /* bool * */
    ARGS_TEXT,    /* const char ** */
    ARGS_INTEGER, /* int64_t *, within lower and upper */
    ARGS_NUMBER,  /* double *, finite, within lower and upper; lower DBL_MIN means "above 0" */
    ARGS_CHOICE,  /* int *, index into `choices` */
    /* the same, or ARGS_ALONE where neither "=VALUE" nor one of the choices follows */
    ARGS_MAYBE_CHOICE,
    ARGS_LIST /* args_list *: may be given several times */
} args_kind;

enum { ARGS_LIST_SIZE = 256 };

/* The values of an option that may be given several times, in their order. */
typedef struct args_list {
    const char *item[ARGS_LIST_SIZE];
    int count;
} args_list;

enum { ARGS_ALONE = -1 };

typedef struct args_option {
    const char *name;        /* without the dashes; NULL ends a list */
    const char *placeholder; /* "N", NULL for flags */
    const char *help;
    args_kind kind;
    void *target;
    double lower, upper;
    const char *const *choices; /* ends with NULL */
} args_option;

typedef struct args_group {
    const char *title;          /* NULL ends a list */
    const args_option *options; /* ends with a NULL name */
} args_group;

typedef struct args_command {
    const char *name;
    const char *operands;    /* "MODEL", "FILE...", "" */
    const char *description; /* one or more lines, each ending in a newline */
    const char *examples;    /* likewise, indented by two */
    int minimum_operands, maximum_operands;
} args_command;

typedef enum args_outcome {
    ARGS_READY,
    ARGS_HELPED, /* --help was asked for and printed */
    ARGS_WRONG   /* said on stderr */
} args_outcome;

/* Parses "--name value", "--name=value", "-h", "--". Operands are moved to argv[1 ...] in their
 * order; their number goes to *operands. */
args_outcome args_parse(const args_command *command, const args_group *groups, int argc,
                        char **argv, int *operands);

/* Prints the text of --help. Another printer makes other texts of the same tables; NULL: the usual. */
typedef void args_printer(const args_command *, const args_group *);
void args_set_printer(args_printer *);

/* Says on stderr that the command line of `command` is wrong, and where help is. */
void args_complain(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The one of `names` (ends with NULL) that is most like `word`, or NULL if none is like it. */
const char *args_nearest(const char *word, const char *const *names);

#endif
