/* The part of tribo bench that runs the theses' tables again. */
#ifndef CLI_BENCH_THESIS_H
#define CLI_BENCH_THESIS_H

#include <stdbool.h>

/* True if the name is that of a thesis with reproducible tables. */
bool bench_thesis_is(const char *name);
int command_bench_thesis(int argc, char **argv);

/* tribo bench modelica: bench_modelica.c. */
int command_bench_modelica(int argc, char **argv);

#endif
