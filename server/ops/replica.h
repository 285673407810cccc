/* Replicas of a fleet, and the session ids that name them.
 *
 * Daemons of a fleet have numbers 0, 1, ... and know each other's gRPC addresses by [fleet]
 * replica and addresses. The last four bytes of a session's id hold a checksum of the other twelve
 * and the number of the replica that made it, so every replica can tell a lost client the address
 * where its session lives, without a shared store. */
#ifndef SERVER_REPLICA_H
#define SERVER_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/config.h"

enum { TD_REPLICA_ID_BYTES = 16, TD_REPLICA_LIMIT = 65536 };

/* INVALID_ARGUMENT names the option of [fleet] that is missing, malformed or contradicts the
 * other. */
tb_status td_replica_check(const td_config *, tb_error *);
/* This daemon's number; -1 outside of a fleet. */
int32_t td_replica_number(const td_config *);
/* Marks a random id with this daemon's number; outside of a fleet the id stays random. */
void td_replica_mark(const td_config *, uint8_t id[TD_REPLICA_ID_BYTES]);
/* The address of the other replica that made the id. False outside of a fleet, for this daemon's
 * own ids and for ids that no replica of [fleet] addresses made. */
bool td_replica_of_id(const td_config *, const uint8_t id[TD_REPLICA_ID_BYTES],
                      char address[TD_CONFIG_TEXT_SIZE]);

/* NOT_FOUND for a thing that another replica has. The client reads the replica's address from the
 * metadata `replica` of google.rpc.ErrorInfo. */
tb_status td_replica_fail(tb_error *, const char *field, const char *id, const char *address);
/* The address that td_replica_fail put into an error; "" for any other error. */
const char *td_replica_of_error(const tb_error *);

#endif
