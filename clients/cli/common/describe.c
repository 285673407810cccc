/* Completions for bash, zsh and fish, and manual pages: see describe.h. */
#include "common/describe.h"

#include <stdio.h>
#include <string.h>

#include "tribo.h"

/* The command whose --help the printers below print. */
static struct {
    const cli_subcommand *command;
} now;

/* Asks every command for its help, which `printer` prints. */
static void ask(const cli_subcommand *command, args_printer *printer)
{
    char name[32], help[] = "--help";
    snprintf(name, sizeof name, "%s", command->name);
    char *arguments[] = {name, help, NULL};
    now.command = command;
    args_set_printer(printer);
    command->function(2, arguments);
    args_set_printer(NULL);
}

static bool has_choices(const args_option *o)
{
    return o->kind == ARGS_CHOICE || o->kind == ARGS_MAYBE_CHOICE;
}

static void print_choices(const args_option *o)
{
    for (int i = 0; o->choices[i] != NULL; i++) printf("%s%s", i > 0 ? " " : "", o->choices[i]);
}

#define FOR_EACH_OPTION(o, groups)                                                                 \
    for (const args_group *g_ = groups; g_->title != NULL; g_++)                                   \
        for (const args_option *o = g_->options; o->name != NULL; o++)

/* Text with a backslash before each of `special`. */
static void print_escaped(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (strchr(special, *text) != NULL) putchar('\\');
        putchar(*text);
    }
}

/* Text inside of single quotes, which are closed, escaped and opened again. */
static void print_quoted(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            printf("'\\''");
            continue;
        }
        if (strchr(special, *text) != NULL) putchar('\\');
        putchar(*text);
    }
}

/* ---- bash ---- */

static void bash_values(const args_command *command, const args_group *groups)
{
    (void)command;
    FOR_EACH_OPTION(o, groups)
    {
        if (!has_choices(o)) continue;
        printf("    %s:--%s) COMPREPLY=($(compgen -W \"", now.command->name, o->name);
        print_choices(o);
        printf("\" -- \"$word\")); return ;;\n");
    }
}

static void bash_options(const args_command *command, const args_group *groups)
{
    (void)command;
    printf("        %s) COMPREPLY=($(compgen -W \"", now.command->name);
    FOR_EACH_OPTION(o, groups) printf("--%s ", o->name);
    printf("--help\" -- \"$word\")) ;;\n");
}

static void print_bash(const cli_subcommand *commands, int count)
{
    printf("# bash completion of tribo %s\n"
           "_tribo() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command=${COMP_WORDS[1]}\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"",
           TB_VERSION);
    for (int i = 0; i < count; i++) printf("%s ", commands[i].name);
    printf("--help --version\" -- \"$word\"))\n        return\n    fi\n"
           "    case $command:$previous in\n");
    for (int i = 0; i < count; i++) ask(&commands[i], bash_values);
    printf("    esac\n    if [[ $word == -* ]]; then\n        case $command in\n");
    for (int i = 0; i < count; i++) ask(&commands[i], bash_options);
    printf("        esac\n        return\n    fi\n"
           "    COMPREPLY=($(compgen -f -- \"$word\"))\n}\n"
           "complete -o filenames -F _tribo tribo\n");
}

/* ---- zsh ---- */

static void zsh_options(const args_command *command, const args_group *groups)
{
    printf("    %s) _arguments \\\n", now.command->name);
    FOR_EACH_OPTION(o, groups)
    {
        printf("        '%s--%s", o->kind == ARGS_LIST ? "*" : "", o->name);
        printf("%s[", o->kind == ARGS_MAYBE_CHOICE ? "=-" : o->placeholder != NULL ? "=" : "");
        print_quoted(o->help, "[]\\");
        putchar(']');
        if (has_choices(o)) {
            printf("%s:(", o->kind == ARGS_MAYBE_CHOICE ? "::value" : ":value");
            print_choices(o);
            putchar(')');
        } else if (o->placeholder != NULL) {
            putchar(':');
            print_quoted(o->placeholder, ":\\");
            printf(":%s", o->kind == ARGS_TEXT || o->kind == ARGS_LIST ? "_files" : "");
        }
        printf("' \\\n");
    }
    printf("        '--help[this text]'%s ;;\n",
           command->operands[0] != '\0' ? " '*:file:_files'" : "");
}

static void print_zsh(const cli_subcommand *commands, int count)
{
    printf("#compdef tribo\n# zsh completion of tribo %s\n_tribo() {\n"
           "    local -a commands\n    commands=(\n",
           TB_VERSION);
    for (int i = 0; i < count; i++) {
        printf("        '%s:", commands[i].name);
        print_quoted(commands[i].summary, ":\\");
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n"
           "        return\n    fi\n    shift words\n    (( CURRENT-- ))\n    case $words[1] in\n");
    for (int i = 0; i < count; i++) ask(&commands[i], zsh_options);
    printf("    esac\n}\n_tribo \"$@\"\n");
}

/* ---- fish ---- */

static void fish_options(const args_command *command, const args_group *groups)
{
    (void)command;
    FOR_EACH_OPTION(o, groups)
    {
        printf("complete -c tribo -n '__fish_seen_subcommand_from %s' -l %s -d '",
               now.command->name, o->name);
        print_escaped(o->help, "'\\");
        putchar('\'');
        if (has_choices(o)) {
            printf(" -xa '");
            print_choices(o);
            putchar('\'');
        } else if (o->placeholder != NULL) {
            printf(" -r");
        }
        putchar('\n');
    }
}

static void print_fish(const cli_subcommand *commands, int count)
{
    printf("# fish completion of tribo %s\n", TB_VERSION);
    for (int i = 0; i < count; i++) {
        printf("complete -c tribo -n __fish_use_subcommand -fa %s -d '", commands[i].name);
        print_escaped(commands[i].summary, "'\\");
        printf("'\n");
    }
    for (int i = 0; i < count; i++) ask(&commands[i], fish_options);
}

void cli_print_completion(const char *shell, const cli_subcommand *commands, int count)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(commands, count);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(commands, count);
    else
        print_fish(commands, count);
}

/* ---- manual pages ---- */

/* Text as roff: backslashes and dashes escaped, no line that begins with a request. */
static void print_roff(const char *text)
{
    bool begins = true;
    for (; *text != '\0'; text++) {
        if (begins && (*text == '.' || *text == '\'')) printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static void manual(const args_command *command, const args_group *groups)
{
    printf(".TH TRIBO-%s 1 \"\" \"tribo %s\"\n.SH NAME\ntribo\\-%s \\- ", now.command->name,
           TB_VERSION, now.command->name);
    print_roff(now.command->summary);
    printf("\n.SH SYNOPSIS\n.B tribo %s\n[options] ", command->name);
    print_roff(command->operands);
    printf("\n.SH DESCRIPTION\n");
    print_roff(command->description);
    printf(".SH OPTIONS\n");
    for (const args_group *g = groups; g->title != NULL; g++) {
        printf(".SS ");
        print_roff(g->title);
        putchar('\n');
        for (const args_option *o = g->options; o->name != NULL; o++) {
            printf(".TP\n\\fB\\-\\-");
            print_roff(o->name);
            printf("\\fR");
            if (o->placeholder != NULL) {
                printf(" \\fI");
                print_roff(o->placeholder);
                printf("\\fR");
            }
            putchar('\n');
            print_roff(o->help);
            for (int i = 0; has_choices(o) && o->choices[i] != NULL; i++) {
                printf("%s", i == 0 ? ": " : ", ");
                print_roff(o->choices[i]);
            }
            putchar('\n');
        }
    }
    printf(".SH EXAMPLES\n.nf\n");
    print_roff(command->examples);
    printf(
        ".fi\n.SH EXIT STATUS\n0 done; 1 a file could not be read, written or understood; 2 wrong "
        "command line; 3 diverged or tolerance not reached; 130 interrupted, with what was done "
        "until then.\n.SH SEE ALSO\n.BR tribo (1)\n");
}

void cli_print_manual(const cli_subcommand *command, const cli_subcommand *all, int count)
{
    if (command != NULL) {
        ask(command, manual);
        return;
    }
    printf(".TH TRIBO 1 \"\" \"tribo %s\"\n.SH NAME\n"
           "tribo \\- contact dynamics with the exact Coulomb law\n.SH SYNOPSIS\n"
           ".B tribo\n.I COMMAND\n[options] ...\n.SH COMMANDS\n",
           TB_VERSION);
    for (int i = 0; i < count; i++) {
        printf(".TP\n.BR tribo\\-%s (1)\n", all[i].name);
        print_roff(all[i].summary);
        putchar('\n');
    }
}
