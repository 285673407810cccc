/* Parses a command line by its table of options, and prints help and errors. See args.h. */
#include "common/args.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 32, HELP_COLUMN = 26 };

/* ---- likeness ---- */

/* Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][LONGEST_NAME + 1] = {{0}};
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST_NAME || m > LONGEST_NAME) return LONGEST_NAME;

    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++) last[j] = j;
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            now[j] = best;
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

const char *args_nearest(const char *word, const char *const *names)
{
    const char *nearest = NULL;
    const int length = (int)strlen(word);
    int best = length / 2 + 1;
    for (int i = 0; names[i] != NULL; i++) {
        /* a beginning ("tol" for "tolerance") is as good as one wrong letter */
        const bool beginning = length >= 2 && strncmp(names[i], word, (size_t)length) == 0;
        const int distance = beginning ? 1 : edit_distance(word, names[i]);
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

/* ---- complaints ---- */

void args_complain(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "tribo %s: ", command);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nTry 'tribo %s --help'.\n", command);
    va_end(arguments);
}

static void complain_unknown(const args_command *command, const args_group *groups,
                             const char *name)
{
    const char *names[64] = {"help"};
    int count = 1;
    for (const args_group *g = groups; g->title != NULL; g++)
        for (const args_option *o = g->options; o->name != NULL && count < 63; o++)
            names[count++] = o->name;
    const char *nearest = args_nearest(name, names);
    if (nearest != NULL)
        args_complain(command->name, "no option '--%s'; did you mean '--%s'?", name, nearest);
    else
        args_complain(command->name, "no option '--%s'", name);
}

/* ---- help ---- */

static void print_help(const args_command *command, const args_group *groups)
{
    printf("usage: tribo %s [options]%s%s\n\n%s", command->name, command->operands[0] ? " " : "",
           command->operands, command->description);
    for (const args_group *g = groups; g->title != NULL; g++) {
        printf("\n%s:\n", g->title);
        for (const args_option *o = g->options; o->name != NULL; o++) {
            char left[64];
            snprintf(left, sizeof left, "  --%s%s%s", o->name, o->placeholder != NULL ? " " : "",
                     o->placeholder != NULL ? o->placeholder : "");
            printf("%-*s %s", HELP_COLUMN, left, o->help);
            const bool choices = o->kind == ARGS_CHOICE || o->kind == ARGS_MAYBE_CHOICE;
            for (int i = 0; choices && o->choices[i] != NULL; i++)
                printf("%s%s", i == 0 ? ": " : ", ", o->choices[i]);
            printf("\n");
        }
    }
    printf("%-*s this text\n", HELP_COLUMN, "  --help");
    printf("\nexamples:\n%s", command->examples);
    printf(
        "\nexit codes: 0 done; 1 a file could not be read, written or understood; 2 wrong command "
        "line;\n3 diverged or tolerance not reached; 130 interrupted, with what was done until "
        "then\n");
}

static args_printer *printer = print_help;

void args_set_printer(args_printer *other)
{
    printer = other != NULL ? other : print_help;
}

/* ---- values ---- */

static bool parse_number(const args_command *command, const args_option *o, const char *text)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) {
        args_complain(command->name, "--%s needs a number, not '%s'", o->name, text);
        return false;
    }
    if (value < o->lower || value > o->upper) {
        if (o->lower == DBL_MIN)
            args_complain(command->name, "--%s must be above 0 and at most %g, not %s", o->name,
                          o->upper, text);
        else
            args_complain(command->name, "--%s must be from %g to %g, not %s", o->name, o->lower,
                          o->upper, text);
        return false;
    }
    *(double *)o->target = value;
    return true;
}

static bool parse_integer(const args_command *command, const args_option *o, const char *text)
{
    char *end = NULL;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0') {
        args_complain(command->name, "--%s needs a whole number, not '%s'", o->name, text);
        return false;
    }
    if (errno == ERANGE || (double)value < o->lower || (double)value > o->upper) {
        args_complain(command->name, "--%s must be from %.0f to %.0f, not %s", o->name, o->lower,
                      o->upper, text);
        return false;
    }
    *(int64_t *)o->target = value;
    return true;
}

static bool parse_choice(const args_command *command, const args_option *o, const char *text)
{
    char list[256] = "";
    for (int i = 0; o->choices[i] != NULL; i++) {
        if (strcmp(o->choices[i], text) == 0) {
            *(int *)o->target = i;
            return true;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", o->choices[i]);
    }
    const char *nearest = args_nearest(text, o->choices);
    if (nearest != NULL)
        args_complain(command->name, "--%s knows %s, not '%s'; did you mean '%s'?", o->name, list,
                      text, nearest);
    else
        args_complain(command->name, "--%s knows %s, not '%s'", o->name, list, text);
    return false;
}

static bool parse_value(const args_command *command, const args_option *o, const char *text)
{
    switch (o->kind) {
    case ARGS_FLAG: *(bool *)o->target = true; return true;
    case ARGS_TEXT: *(const char **)o->target = text; return true;
    case ARGS_INTEGER: return parse_integer(command, o, text);
    case ARGS_NUMBER: return parse_number(command, o, text);
    case ARGS_CHOICE:
    case ARGS_MAYBE_CHOICE: return parse_choice(command, o, text);
    case ARGS_LIST: {
        args_list *list = o->target;
        if (list->count == ARGS_LIST_SIZE) {
            args_complain(command->name, "--%s is given more than %d times", o->name,
                          ARGS_LIST_SIZE);
            return false;
        }
        list->item[list->count++] = text;
        return true;
    }
    }
    return false;
}

/* ---- the command line ---- */

static const args_option *find_option(const args_group *groups, const char *name, size_t length)
{
    for (const args_group *g = groups; g->title != NULL; g++)
        for (const args_option *o = g->options; o->name != NULL; o++)
            if (strlen(o->name) == length && strncmp(o->name, name, length) == 0) return o;
    return NULL;
}

static bool is_choice(const args_option *o, const char *text)
{
    for (int i = 0; text != NULL && o->choices[i] != NULL; i++)
        if (strcmp(o->choices[i], text) == 0) return true;
    return false;
}

/* Takes the option at argv[*i] and, where it needs one, the value behind it. */
static bool parse_option(const args_command *command, const args_group *groups, int argc,
                         char **argv, int *i)
{
    const char *name = argv[*i] + 2;
    const char *equals = strchr(name, '=');
    const size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const args_option *o = find_option(groups, name, length);
    if (o == NULL) {
        char word[LONGEST_NAME + 1];
        snprintf(word, sizeof word, "%.*s", (int)(length < LONGEST_NAME ? length : LONGEST_NAME),
                 name);
        complain_unknown(command, groups, word);
        return false;
    }
    if (o->kind == ARGS_FLAG && equals != NULL) {
        args_complain(command->name, "--%s takes no value", o->name);
        return false;
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (o->kind == ARGS_MAYBE_CHOICE && value == NULL && !is_choice(o, argv[*i + 1])) {
        *(int *)o->target = ARGS_ALONE;
        return true;
    }
    if (o->kind != ARGS_FLAG && value == NULL) {
        if (*i + 1 >= argc) {
            args_complain(command->name, "--%s needs a value (%s)", o->name, o->placeholder);
            return false;
        }
        value = argv[++*i];
    }
    return parse_value(command, o, value);
}

args_outcome args_parse(const args_command *command, const args_group *groups, int argc,
                        char **argv, int *operands)
{
    int count = 0;
    bool only_operands = false;

    /* --help takes precedence over every other error */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printer(command, groups);
            return ARGS_HELPED;
        }

    for (int i = 1; i < argc; i++) {
        if (only_operands || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[1 + count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (argv[i][1] != '-') {
            complain_unknown(command, groups, argv[i] + 1);
            return ARGS_WRONG;
        } else if (!parse_option(command, groups, argc, argv, &i)) {
            return ARGS_WRONG;
        }
    }
    *operands = count;
    if (count < command->minimum_operands) {
        args_complain(command->name, "%s is missing", command->operands);
        return ARGS_WRONG;
    }
    if (count > command->maximum_operands) {
        args_complain(command->name, "'%s' is one operand too many",
                      argv[1 + command->maximum_operands]);
        return ARGS_WRONG;
    }
    return ARGS_READY;
}
