/* JSON as the command prints it: numbers with 17 digits, so that a double survives the journey, and
 * null for whatever is not a finite number. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "tribo.h"

json_t *json_finite(double value);
json_t *json_vector(const double *values, int32_t count);
/* Text that may hold anything, file names for one: bytes that are not UTF-8 become '?'. */
json_t *json_text(const char *text);
/* All fields; the energies are null unless they were reported. */
json_t *json_certificate(const tb_certificate *certificate, bool energy);
/* { "status", "message", "file", "line", "field" } */
json_t *json_error(const tb_error *error);

/* Prints the object on a line of its own and drops it. False if it could not. */
bool json_print(FILE *file, json_t *object);
/* The same without the end of the line; json_write_members also without the braces. */
bool json_write(FILE *file, json_t *object);
bool json_write_members(FILE *file, json_t *object);

#endif
