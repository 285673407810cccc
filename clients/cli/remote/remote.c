/* Connects to a daemon by the common options, and checks its answers. See remote.h. */
#include "remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cli.h"
#include "common/files.h"

static const double CONNECT_S = 5;
enum { PEM_LIMIT = 1 << 20 };

void remote_option_list(remote_options *o, args_option list[REMOTE_OPTIONS])
{
    const args_option options[REMOTE_OPTIONS] = {
        {"server", "ADDRESS", "HOST:PORT or unix:PATH ($TRIBO_SERVER, or 127.0.0.1:7410)",
         ARGS_TEXT, &o->address, 0, 0, NULL},
        {"key", "KEY", "API key; better in $TRIBO_API_KEY, where others do not see it", ARGS_TEXT,
         &o->key, 0, 0, NULL},
        {"trust", "FILE.pem", "use TLS and trust these certificates", ARGS_TEXT, &o->trust, 0, 0,
         NULL},
        {"certificate", "FILE.pem", "show this certificate (mutual TLS)", ARGS_TEXT,
         &o->certificate, 0, 0, NULL},
        {"certificate-key", "FILE.pem", "and its key", ARGS_TEXT, &o->certificate_key, 0, 0, NULL},
        {"timeout", "S", "for every call (none)", ARGS_NUMBER, &o->timeout, 0, 1e9, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    memcpy(list, options, sizeof options);
}

const char *remote_address(const remote_options *options)
{
    if (options->address != NULL) return options->address;
    const char *named = getenv("TRIBO_SERVER");
    return named != NULL && named[0] != '\0' ? named : tbc_options_defaults().address;
}

/* A PEM file as text; NULL for no file. */
static tb_status read_pem(const char *path, char **pem, tb_error *error)
{
    size_t size = 0;
    *pem = NULL;
    return path != NULL ? files_read(path, PEM_LIMIT, pem, &size, error) : TB_OK;
}

tb_status remote_connect(const remote_options *options, tbc_client **client, tb_error *error)
{
    char *trust = NULL, *certificate = NULL, *key = NULL;
    tbc_options o = tbc_options_defaults();
    o.address = remote_address(options);
    o.api_key = options->key != NULL ? options->key : getenv("TRIBO_API_KEY");
    if (o.api_key != NULL && o.api_key[0] == '\0') o.api_key = NULL;
    /* a process within a trace has its context in the environment */
    o.traceparent = getenv("TRACEPARENT");
    o.tracestate = getenv("TRACESTATE");
    o.timeout = options->timeout;
    o.connect_timeout = CONNECT_S;
    if (options->attempts > 0) o.attempts = options->attempts;
    *client = NULL;
    tb_status status = read_pem(options->trust, &trust, error);
    if (status == TB_OK) status = read_pem(options->certificate, &certificate, error);
    if (status == TB_OK) status = read_pem(options->certificate_key, &key, error);
    o.root_pem = trust;
    o.client_pem = certificate;
    o.client_key = key;
    if (status == TB_OK) status = tbc_connect(&o, client, error);
    free(trust);
    free(certificate);
    free(key);
    return status;
}

const char *remote_time(int64_t time_us, char text[32])
{
    const time_t seconds = (time_t)(time_us / 1000000);
    struct tm parts;
    if (time_us == 0 || gmtime_r(&seconds, &parts) == NULL ||
        strftime(text, 32, "%Y-%m-%d %H:%M:%S", &parts) == 0)
        snprintf(text, 32, "-");
    return text;
}
