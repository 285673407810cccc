/* A daemon of the benchmark's own: beside the program under test, on loopback, with its data in a
 * scratch folder. */
#ifndef COMMON_DAEMON_H
#define COMMON_DAEMON_H

#include <sys/types.h>

#include "common_bench.h"

typedef struct bench_daemon {
    pid_t pid;
    char grpc[64], http[64];
    char folder[64];
    double start_seconds; /* from exec to the ready line */
} bench_daemon;

/* Stops the program if the daemon does not start. */
void bench_daemon_start(bench_daemon *);
/* Resident memory in bytes. */
double bench_daemon_memory(const bench_daemon *);
/* SIGTERM, waits, removes the folder. */
void bench_daemon_stop(bench_daemon *);

#endif
