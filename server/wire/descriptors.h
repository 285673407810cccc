/* Descriptors: connections are limited before they run out, and some are kept for the store, for
 * files that are read, and for health checks. */
#ifndef SERVER_DESCRIPTORS_H
#define SERVER_DESCRIPTORS_H

#include <stdint.h>

/* Raises the soft limit to the hard one; the limit that holds then. */
int64_t td_descriptors_raise(void);
/* Limit of open descriptors, and the number open now; 0 if unknown. */
int64_t td_descriptors_limit(void);
int64_t td_descriptors_open(void);
/* Connections that one of `transports` may hold, at most `wanted`: its share of the descriptors
 * outside the reserve, at least one. */
int32_t td_descriptors_for_connections(int32_t wanted, int transports);

#endif
