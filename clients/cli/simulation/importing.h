/* How the commands read models: package folders, overlapping links, inertias that cannot be. */
#ifndef CLI_IMPORTING_H
#define CLI_IMPORTING_H

#include "common/args.h"
#include "tribo.h"

typedef struct importing {
    const char *package_path; /* of the command line; NULL: none */
    int overlaps;             /* tb_overlap_policy */
    bool balance_inertia;
    char
        *roots; /* package_path and the folders that ROS knows; heap, NULL before it is asked for */
} importing;

enum { IMPORTING_OPTIONS = 4 };

/* The command-line options that fill `i`: package-path, balance-inertia, overlaps. */
void importing_option_list(importing *i, args_option list[IMPORTING_OPTIONS]);

/* Fills the importer's options, borrowed from `i`: package folders come from --package-path, then
 * from ROS_PACKAGE_PATH (ROS 1) and the share folders of AMENT_PREFIX_PATH (ROS 2). */
tb_status importing_fill(importing *i, tb_import_options *options, tb_error *error);
void importing_free(importing *i);

#endif
