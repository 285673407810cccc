/* Recordings: one row a step of the first world, as CSV or as JSON lines.
 *
 * CSV columns: time; for every body x, y, z (m), qw, qx, qy, qz, vx, vy, vz (m/s), wx, wy, wz
 * (rad/s); for every joint its coordinates and velocities; the number of contacts; the certificate.
 * JSON lines hold the same by name, laid out as in `tribo run --json`. */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include <jansson.h>

#include "common/names.h"
#include "simulation/simulation.h"

typedef struct record record;

/* Opens the file and writes the header. The extension decides: .csv or .jsonl. */
tb_status record_open(const char *path, const simulation *s, const name_list *bodies,
                      const name_list *joints, record **recording, tb_error *error);
tb_status record_step(record *recording, const simulation *s, tb_error *error);
/* Discards a recording; keeps the old content of its path. NULL is fine. */
void record_abandon(record *recording);
tb_status record_close(record *recording, tb_error *error); /* NULL is fine */

/* name -> position, orientation, linear_velocity, angular_velocity; the world left out */
json_t *record_bodies(const tb_state *state, const name_list *bodies);
/* name -> position, velocity: numbers, or arrays for joints of several dofs */
json_t *record_joints(const tb_state *state, const name_list *joints);

#endif
