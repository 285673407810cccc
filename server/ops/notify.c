/* The datagrams of sd_notify(3): text to a Unix socket; a leading '@' makes the socket's name
 * abstract. */
#include "ops/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ops/clock.h"

bool td_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (*path != '/' && *path != '@')) return false;
    const size_t length = strlen(path);
    if (length < 2 || length >= sizeof address.sun_path) return false;
    memcpy(address.sun_path, path, length);
    if (*path == '@') address.sun_path[0] = '\0';

    const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (file < 0) return false;
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    const ssize_t sent =
        sendto(file, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, size);
    close(file);
    return sent == (ssize_t)strlen(state);
}

bool td_notify_reloading(void)
{
    char state[80];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, td_monotonic_ns() / 1000);
    return td_notify(state);
}

int64_t td_notify_watchdog_ns(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (us == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid())) return 0;
    const long long number = strtoll(us, NULL, 10);
    return number > 0 && number < INT64_MAX / 1000 ? (int64_t)number * 1000 : 0;
}
