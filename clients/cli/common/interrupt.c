/* Handles SIGINT and SIGTERM by a flag that computations read. See interrupt.h. */
#include "common/interrupt.h"

#include <signal.h>
#include <string.h>

/* A signal handler has no context: this is the one global variable of the command. */
static volatile sig_atomic_t requested;

static void note_signal(int number)
{
    (void)number;
    requested = 1;
}

void interrupt_watch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_signal;
    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_requested(void)
{
    return requested != 0;
}
