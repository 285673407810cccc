/* Reports the daemon's state to systemd by its datagram protocol (sd_notify(3)), without its
 * library. Does nothing if NOTIFY_SOCKET is not set. */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Sends "READY=1", "STOPPING=1", "WATCHDOG=1" or several lines. False if no message was sent. */
bool td_notify(const char *state);
/* "RELOADING=1" with the monotonic time that systemd requires. */
bool td_notify_reloading(void);
/* How often WATCHDOG=1 is expected, ns; 0: not at all (WATCHDOG_USEC, WATCHDOG_PID). */
int64_t td_notify_watchdog_ns(void);

#endif
