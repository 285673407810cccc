/* Plot of `tribo run --plot`: heights of free bodies, slides, hinges, and the residual. */
#ifndef CLI_RUN_PLOT_H
#define CLI_RUN_PLOT_H

#include "common/names.h"
#include "common/plot.h"
#include "simulation/simulation.h"

/* Where a line's values come from. */
typedef struct run_plot_source {
    bool height; /* of a body, else a joint's coordinate */
    int32_t index;
} run_plot_source;

typedef struct run_plot {
    plot plot;
    run_plot_source sources[PLOT_PANELS * PLOT_SERIES];
    int32_t count;
} run_plot;

tb_status run_plot_begin(run_plot *p, const simulation *s, const char *path,
                         const name_list *bodies, const name_list *joints, tb_error *error);
void run_plot_sample(run_plot *p, const simulation *s);

#endif
