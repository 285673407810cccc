/* Telling systemd what the daemon is at, by its datagram protocol (sd_notify(3)), without its
 * library. Does nothing where NOTIFY_SOCKET is not set. */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Sends "READY=1", "STOPPING=1", "WATCHDOG=1" or several lines. False if nobody was told. */
bool td_notify(const char *state);
/* "RELOADING=1" with the time that systemd asks for beside it. */
bool td_notify_reloading(void);
/* How often WATCHDOG=1 is expected, ns; 0: not at all (WATCHDOG_USEC, WATCHDOG_PID). */
int64_t td_notify_watchdog_ns(void);

#endif
