/* The flag --probe: asks the daemon of this configuration whether it is ready. Health checks of
 * containers call it, since an image without a shell has no curl. */
#ifndef SERVER_PROBE_COMMAND_H
#define SERVER_PROBE_COMMAND_H

#include "ops/config.h"

/* Requests /readyz of the daemon at [server] http_address, over TLS if the configuration has a
 * certificate, and prints the answer's first line. OK: the daemon answered 200. UNAVAILABLE: it
 * answered otherwise, or not within five seconds; the message holds the reason. The address 0.0.0.0
 * or [::] is asked on loopback. The certificate is not verified: the probe sends no secret. */
tb_status td_probe(const td_config *, tb_error *);

#endif
