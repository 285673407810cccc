/* `tribo run` of a scene of soft bodies (tribo_soft.h). */
#ifndef CLI_RUN_SOFT_H
#define CLI_RUN_SOFT_H

#include "simulation/simulation.h"

typedef struct run_soft_request {
    const simulation_options *options; /* path, dt, threads, solver, quiet */
    int64_t steps;                     /* -1: by time */
    double time;                       /* s; 0: 1 s */
    const char *record_path;           /* .csv or .pvd; may be NULL */
    const char *plot_path;             /* .svg; may be NULL */
    bool json;
} run_soft_request;

/* Whether the file is a scene of soft bodies; false also if it cannot be read. */
bool run_soft_takes(const char *path);

/* Runs it; returns the command's exit code. */
int run_soft(const run_soft_request *request);

#endif
