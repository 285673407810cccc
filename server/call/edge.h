/* Checks at the edge: whether a caller on a loopback connection is local or comes through a proxy, and
 * whether the framing of a request is sound. For both transports: HTTP asks from its
 * headers, gRPC from its metadata and :authority. */
#ifndef SERVER_EDGE_H
#define SERVER_EDGE_H

#include "ops/config.h"

/* Whether a header's name is one that proxies add: one of [http] forwarding_headers, whatever the
 * case. */
bool td_edge_forwards(const td_config *, const char *name, size_t size);
/* Bit n is set if [http] forwarding_headers has a name of n characters (63: or more): most headers
 * of a call are dismissed by their length. */
uint64_t td_edge_forwarding_lengths(const td_config *);
/* True if the caller counts as on loopback: the connection is, no proxy is configured ([http]
 * behind_proxy) or has left a header (`forwarded`), and `host` (Host or :authority, NULL: none)
 * names this machine's loopback. A page on the Internet that resolves its name to this machine (DNS
 * rebinding) does not count. */
bool td_edge_is_loopback(const td_config *, bool connection, bool forwarded, const char *host);
/* Whether a Host or :authority is HOST or HOST:PORT, without user-info, paths or control bytes
 * (RFC 9112 3.2). */
bool td_edge_host_is_sound(const char *host);
/* Whether a header's name consists of the characters of a token (RFC 9110 5.6.2). */
bool td_edge_name_is_sound(const char *name, size_t size);

/* Headers of one HTTP/1.1 request that determine the request's end. */
typedef struct td_framing {
    int lengths, hosts, codings; /* how many Content-Length, Host, Transfer-Encoding there are */
    bool unknown_coding;         /* one that is not "chunked" */
    bool bad_length;             /* no number of digits */
    bool bad_name;               /* a name that is not a token */
} td_framing;

void td_framing_add(td_framing *, const char *name, size_t name_size, const char *value,
                    size_t size);
/* Why such a request is refused and its connection closed, NULL where it is not. */
const char *td_framing_fault(const td_framing *);

#endif
