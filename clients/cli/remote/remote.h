/* Commands that use a daemon: their common options, and common checks of answers. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "common/args.h"
#include "tribo_client.h"

typedef struct remote_options {
    const char *address;                       /* NULL: $TRIBO_SERVER, else the daemon's default */
    const char *key;                           /* NULL: $TRIBO_API_KEY, else none */
    const char *trust;                         /* PEM file of certificates: TLS; NULL: plain text */
    const char *certificate, *certificate_key; /* PEM files, for mutual TLS; NULL: none */
    double timeout;                            /* s, of every call; 0: none */
    int32_t attempts;                          /* 0: the client library's */
} remote_options;

enum { REMOTE_OPTIONS = 7 };

/* The command-line options that fill `options`; ends with an empty one. */
void remote_option_list(remote_options *options, args_option list[REMOTE_OPTIONS]);
/* Where the daemon is, by option, environment or default. */
const char *remote_address(const remote_options *options);
/* Connects, waiting a few seconds at most. */
tb_status remote_connect(const remote_options *options, tbc_client **client, tb_error *error);

/* "2026-03-01 12:34:56" (UTC) of microseconds since 1970; "-" for 0. Returns `text`. */
const char *remote_time(int64_t time_us, char text[32]);

#endif
