/* Descriptors: connections are limited before they run out, and some are kept for the store, for
 * files that are read, and for health checks. */
#ifndef SERVER_DESCRIPTORS_H
#define SERVER_DESCRIPTORS_H

#include <stdint.h>

/* Raises the soft limit to the hard one; the limit that holds then. */
int64_t td_descriptors_raise(void);
/* How many may be open, and how many are; 0 where that cannot be told. */
int64_t td_descriptors_limit(void);
int64_t td_descriptors_open(void);
/* Connections that one of `transports` may hold of those that it wants: its share of what is left
 * beside the reserve, at least one. */
int32_t td_descriptors_for_connections(int32_t wanted, int transports);

#endif
