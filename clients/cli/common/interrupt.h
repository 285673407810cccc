/* Ctrl-C: long computations check it between their parts and stop with partial results. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on the first SIGINT or SIGTERM is noted; a second one ends the process. */
void interrupt_watch(void);
bool interrupt_requested(void);

#endif
