/* Options of all commands that read models. See importing.h. */
#include "simulation/importing.h"

#include <stdlib.h>
#include <string.h>

#include "common/cli.h"

void importing_option_list(importing *i, args_option list[IMPORTING_OPTIONS])
{
    /* in the order of tb_overlap_policy */
    static const char *const OVERLAPS[] = {"keep", "ignore", "error", NULL};
    const args_option options[IMPORTING_OPTIONS] = {
        {"package-path", "P", "':'-separated roots of package:// addresses", ARGS_TEXT,
         &i->package_path, 0, 0, NULL},
        {"balance-inertia", NULL, "repair moments of inertia that no body can have", ARGS_FLAG,
         &i->balance_inertia, 0, 0, NULL},
        {"overlaps", "WHAT", "contacts of links that overlap in the first pose", ARGS_CHOICE,
         &i->overlaps, 0, 0, OVERLAPS},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    memcpy(list, options, sizeof options);
}

/* Appends the folders of a ':'-separated list, each with `below` behind it. */
static void append_folders(char *roots, const char *list, const char *below)
{
    for (size_t n; list != NULL && *list != '\0'; list += n + (list[n] == ':')) {
        n = strcspn(list, ":");
        if (n == 0) continue;
        if (roots[0] != '\0') strcat(roots, ":");
        strncat(roots, list, n);
        strcat(roots, below);
    }
}

tb_status importing_fill(importing *i, tb_import_options *options, tb_error *error)
{
    static const char SHARE[] = "/share";
    const char *lists[3] = {i->package_path, getenv("ROS_PACKAGE_PATH"),
                            getenv("AMENT_PREFIX_PATH")};
    size_t size = 1;
    for (int k = 0; k < 3; k++)
        for (const char *c = lists[k]; c != NULL && *c != '\0'; c++)
            size += *c == ':' ? 2 + strlen(SHARE) : 1;
    importing_free(i);
    i->roots = calloc(size + 4 * sizeof SHARE, 1);
    if (i->roots == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, "package-path", "no memory");
    append_folders(i->roots, lists[0], "");
    append_folders(i->roots, lists[1], "");
    append_folders(i->roots, lists[2], SHARE);
    options->package_path = i->roots;
    options->balance_inertia = i->balance_inertia;
    options->overlaps = (tb_overlap_policy)i->overlaps;
    return TB_OK;
}

void importing_free(importing *i)
{
    free(i->roots);
    i->roots = NULL;
}
