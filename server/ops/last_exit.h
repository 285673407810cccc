/* Exit status of the previous process over the same data folder. The loss of the last card ends the
 * daemon before its metrics are scraped, so the next process reports the loss. */
#ifndef SERVER_LAST_EXIT_H
#define SERVER_LAST_EXIT_H

#include "tribo.h"

enum {
    TD_LAST_EXIT_NONE = -2,  /* no process used the folder before, or there is no folder */
    TD_LAST_EXIT_KILLED = -1 /* it did not come to its end: a crash, a kill, a power cut */
};

/* Reads the exit status of the last process from FOLDER/last_exit and writes there that this one
 * runs; a folder of "" has neither. UNAVAILABLE if the file cannot be read or written; *last is
 * set all the same. */
tb_status td_last_exit_begin(const char *folder, int *last, tb_error *error);

/* Writes this process's exit status. */
tb_status td_last_exit_end(const char *folder, int status, tb_error *error);

#endif
