/* Text report after a run. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "common/names.h"
#include "simulation/simulation.h"

/* A length, force, ... with three digits and a prefix that keeps it short: "12.3 um", "4 kN". Zero
 * and numbers that are not finite are written plainly. Returns `text`. */
const char *report_quantity(double value, const char *unit, char *text, size_t size);

/* Bodies and joints (a page of each) and the certificate of a run, on stdout. */
void report_state(const simulation *s, const name_list *bodies, const name_list *joints);
void report_certificate(const simulation *s);

#endif
