/* Options by a table: one list drives defaults, parsing, ranges, printing and reloading. The file
 * itself is read by inih, in config_file.c. */
#include "ops/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "ops/config_options.h"
#include "ops/replica.h"

typedef enum option_kind {
    TEXT,
    INTEGER,
    BYTES,
    SECONDS,
    NUMBER,
    SWITCH,
    LEVEL,
    BACKEND,
    FORMAT,
    SCOPE
} option_kind;

typedef struct option {
    const char *section, *name;
    option_kind kind;
    size_t offset; /* in td_config */
    const char *initial;
    double lower, upper;
    bool live;
    const char *help;
} option;

enum { FIXED, LIVE };
#define OPTION(section, name, field, kind, initial, lower, upper, live, help)                      \
    {#section, #name, kind, offsetof(td_config, field), initial, lower, upper, live, help},
static const option OPTIONS[] = {TD_CONFIG_LIST(OPTION)};
enum { NUMBER_OF_OPTIONS = sizeof OPTIONS / sizeof OPTIONS[0] };

/* names of numbers, in their order */
static const char *const LEVELS[] = {"debug", "info", "warning", "error", NULL};
static const char *const BACKENDS[] = {"cpu", "gpu", "auto", NULL}; /* as tb_backend_choice */
static const char *const FORMATS[] = {"text", "json", NULL};
static const char *const SWITCHES[] = {"no", "yes", NULL};
static const char *const SCOPES[] = {"none", "read", "run", "admin", NULL};

static const char *const *names_of(option_kind kind)
{
    switch (kind) {
    case LEVEL: return LEVELS;
    case BACKEND: return BACKENDS;
    case FORMAT: return FORMATS;
    case SWITCH: return SWITCHES;
    case SCOPE: return SCOPES;
    default: return NULL;
    }
}

static void *field_of(td_config *config, const option *o)
{
    return (char *)config + o->offset;
}

static const void *field_of_const(const td_config *config, const option *o)
{
    return (const char *)config + o->offset;
}

static size_t field_size(const option *o)
{
    switch (o->kind) {
    case TEXT: return TD_CONFIG_TEXT_SIZE;
    case INTEGER:
    case SCOPE: return sizeof(int32_t);
    case BYTES: return sizeof(uint64_t);
    case SECONDS:
    case NUMBER: return sizeof(double);
    case SWITCH:
    case FORMAT: return sizeof(bool);
    case LEVEL: return sizeof(tb_log_level);
    case BACKEND: return sizeof(tb_backend_choice);
    }
    return 0;
}

/* ---- values from text
 * ------------------------------------------------------------------------- */

/* Each returns NULL, or the reason why the value is invalid. `why` holds 256 bytes. */

static const char *set_text(char *field, const char *value, char *why)
{
    if (strlen(value) > TD_CONFIG_TEXT_LIMIT) {
        snprintf(why, 256, "is longer than %d bytes", TD_CONFIG_TEXT_LIMIT);
        return why;
    }
    for (const char *c = value; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c)) return "holds a control character";
    /* a value that a line of a file cannot hold would not survive --print-config */
    if (strchr(value, ';') != NULL) return "holds a ';', which begins a comment";
    if (isspace((unsigned char)*value) ||
        (*value != '\0' && isspace((unsigned char)value[strlen(value) - 1])))
        return "begins or ends with a space";
    memset(field, 0, TD_CONFIG_TEXT_SIZE);
    memcpy(field, value, strlen(value));
    return NULL;
}

static const char *range_text(const option *o, const char *what, char *why)
{
    snprintf(why, 256, "must be %s from %.15g to %.15g", what, o->lower, o->upper);
    return why;
}

static const char *set_integer(const option *o, int32_t *field, const char *value, char *why)
{
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || isspace((unsigned char)*value) || errno != 0 ||
        (double)number < o->lower || (double)number > o->upper)
        return range_text(o, "a whole number", why);
    *field = (int32_t)number;
    return NULL;
}

static const char *set_number(const option *o, double *field, const char *value, char *why)
{
    const char *end = value;
    double number = NAN;
    if (!tb_parse_number(&end, &number) || *end != '\0' || !(number >= o->lower) ||
        !(number <= o->upper))
        return range_text(o, o->kind == SECONDS ? "a number of seconds" : "a number", why);
    *field = number + 0.0; /* no negative zero */
    return NULL;
}

/* "4096", "64 KiB", "1MiB" */
static const char *set_bytes(const option *o, uint64_t *field, const char *value, char *why)
{
    static const char *const UNITS[] = {"", "KiB", "MiB", "GiB"};
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(value, &end, 10);
    if (isdigit((unsigned char)*value) && errno == 0) {
        while (*end == ' ') end++;
        for (int unit = 0; unit < 4; unit++) {
            if (strcmp(end, UNITS[unit]) != 0) continue;
            const double bytes = ldexp((double)number, 10 * unit);
            if (bytes < o->lower || bytes > o->upper) break;
            *field = (uint64_t)number << (10 * unit);
            return NULL;
        }
    }
    snprintf(why, 256, "must be a number of bytes (KiB, MiB, GiB) from %.15g to %.15g", o->lower,
             o->upper);
    return why;
}

static const char *set_name(const option *o, void *field, const char *value, char *why)
{
    const char *const *names = names_of(o->kind);
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], value) != 0) continue;
        if (o->kind == LEVEL)
            *(tb_log_level *)field = (tb_log_level)i;
        else if (o->kind == BACKEND)
            *(tb_backend_choice *)field = (tb_backend_choice)i;
        else if (o->kind == SCOPE)
            *(int32_t *)field = i;
        else
            *(bool *)field = i == 1;
        return NULL;
    }
    size_t used = (size_t)snprintf(why, 256, "must be");
    for (int i = 0; names[i] != NULL; i++)
        used += (size_t)snprintf(why + used, 256 - used, "%s %s",
                                 i == 0 ? "" : (names[i + 1] == NULL ? " or" : ","), names[i]);
    return why;
}

static const char *set_value(const option *o, td_config *config, const char *value, char *why)
{
    void *field = field_of(config, o);
    switch (o->kind) {
    case TEXT: return set_text(field, value, why);
    case INTEGER: return set_integer(o, field, value, why);
    case BYTES: return set_bytes(o, field, value, why);
    case SECONDS:
    case NUMBER: return set_number(o, field, value, why);
    default: return set_name(o, field, value, why);
    }
}

static const option *find(const char *section, const char *name)
{
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++)
        if (strcmp(OPTIONS[i].section, section) == 0 && strcmp(OPTIONS[i].name, name) == 0)
            return &OPTIONS[i];
    return NULL;
}

static bool section_exists(const char *section)
{
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++)
        if (strcmp(OPTIONS[i].section, section) == 0) return true;
    return false;
}

td_config td_config_defaults(void)
{
    td_config config;
    char why[256];
    memset(&config, 0, sizeof config);
    /* every default passes, as a test makes sure */
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++)
        set_value(&OPTIONS[i], &config, OPTIONS[i].initial, why);
    return config;
}

tb_status td_config_set(td_config *config, const char *section, const char *name, const char *value,
                        const char *source, tb_error *error)
{
    char field[TB_ERROR_NAME_SIZE], why[256];
    snprintf(field, sizeof field, "%s.%s", section, name);
    const option *o = find(section, name);
    if (o == NULL && *section == '\0')
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s: option '%s' stands before the first section", source, name);
    if (o == NULL && !section_exists(section))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s: there is no section [%s] (option '%s')", source, section, name);
    if (o == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                             "%s: there is no option '%s' in section [%s]", source, name, section);
    const char *wrong = set_value(o, config, value, why);
    if (wrong == NULL) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s: [%s] %s = '%.200s' %s", source,
                         section, name, value, wrong);
}

/* True if a variable "TRIBOD_...=value" belongs to an option, to the tests' clocks, or to
 * Kubernetes, which sets the address of a service named "tribod" in every container. */
static bool variable_is_known(const char *variable)
{
    static const char *const KUBERNETES[] = {"TRIBOD_PORT", "TRIBOD_SERVICE_"};
    for (size_t i = 0; i < sizeof KUBERNETES / sizeof KUBERNETES[0]; i++)
        if (strncmp(variable, KUBERNETES[i], strlen(KUBERNETES[i])) == 0) return true;
    static const char *const OTHERS[] = {"TRIBOD_TEST_CLOCK", "TRIBOD_TEST_WALL_CLOCK"};
    const size_t length = strcspn(variable, "=");
    char name[128];
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        if (strlen(OTHERS[i]) == length && strncmp(variable, OTHERS[i], length) == 0) return true;
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++) {
        snprintf(name, sizeof name, "TRIBOD_%s_%s", OPTIONS[i].section, OPTIONS[i].name);
        for (char *c = name; *c != '\0'; c++) *c = (char)toupper((unsigned char)*c);
        if (strlen(name) == length && strncmp(variable, name, length) == 0) return true;
    }
    return false;
}

tb_status td_config_environment(td_config *config, char *const *environment, tb_error *error)
{
    for (char *const *e = environment; *e != NULL; e++) {
        if (strncmp(*e, "TRIBOD_", strlen("TRIBOD_")) != 0 || variable_is_known(*e)) continue;
        char name[TB_ERROR_NAME_SIZE];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
        return tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                             "the environment holds %.100s, which is no option: options are "
                             "TRIBOD_SECTION_OPTION, as --print-config lists them",
                             name);
    }
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++) {
        char variable[128];
        const int length = snprintf(variable, sizeof variable, "TRIBOD_%s_%s", OPTIONS[i].section,
                                    OPTIONS[i].name);
        for (char *c = variable; *c != '\0'; c++) *c = (char)toupper((unsigned char)*c);
        for (char *const *e = environment; *e != NULL; e++) {
            if (strncmp(*e, variable, (size_t)length) != 0 || (*e)[length] != '=') continue;
            const tb_status status = td_config_set(config, OPTIONS[i].section, OPTIONS[i].name,
                                                   *e + length + 1, variable, error);
            if (status != TB_OK) return status;
        }
    }
    return TB_OK;
}

/* ---- printing, comparing
 * ---------------------------------------------------------------------- */

static void print_value(const option *o, const td_config *config, FILE *out)
{
    static const char *const UNITS[] = {"", " KiB", " MiB", " GiB"};
    const void *field = field_of_const(config, o);
    char text[64];
    switch (o->kind) {
    case TEXT: fputs(field, out); break;
    case INTEGER: fprintf(out, "%" PRId32, *(const int32_t *)field); break;
    case BYTES: {
        uint64_t bytes = *(const uint64_t *)field;
        int unit = 0;
        while (unit < 3 && bytes != 0 && bytes % 1024 == 0) bytes /= 1024, unit++;
        fprintf(out, "%" PRIu64 "%s", bytes, UNITS[unit]);
        break;
    }
    case SECONDS:
    case NUMBER:
        /* as short as it can be and still the same number */
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, *(const double *)field);
            if (strtod(text, NULL) == *(const double *)field) break;
        }
        fputs(text, out);
        break;
    case SCOPE: fputs(SCOPES[*(const int32_t *)field], out); break;
    case LEVEL: fputs(LEVELS[*(const tb_log_level *)field], out); break;
    case BACKEND: fputs(BACKENDS[*(const tb_backend_choice *)field], out); break;
    case FORMAT:
    case SWITCH: fputs(names_of(o->kind)[*(const bool *)field], out); break;
    }
}

void td_config_print(const td_config *config, FILE *out)
{
    const char *section = "";
    fputs(
        "# Configuration of tribod. A variable TRIBOD_SECTION_OPTION in the environment overrules\n"
        "# a line of this file, and a flag of the command line overrules both. SIGHUP reads the\n"
        "# file again; options marked with (start) keep their value until the next start.\n",
        out);
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++) {
        const option *o = &OPTIONS[i];
        if (strcmp(o->section, section) != 0) fprintf(out, "\n[%s]\n", o->section);
        section = o->section;
        fprintf(out, "# %s%s\n%s =", o->help, o->live ? "" : " (start)", o->name);
        if (o->kind != TEXT || *(const char *)field_of_const(config, o) != '\0') fputc(' ', out);
        print_value(o, config, out);
        fputc('\n', out);
    }
}

static bool same_value(const option *o, const td_config *a, const td_config *b)
{
    if (o->kind == TEXT) return strcmp(field_of_const(a, o), field_of_const(b, o)) == 0;
    return memcmp(field_of_const(a, o), field_of_const(b, o), field_size(o)) == 0;
}

bool td_config_equal(const td_config *a, const td_config *b)
{
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++)
        if (!same_value(&OPTIONS[i], a, b)) return false;
    return true;
}

void td_config_keep_fixed(td_config *config, const td_config *running,
                          void (*kept)(void *context, const char *option), void *context)
{
    for (int i = 0; i < NUMBER_OF_OPTIONS; i++) {
        const option *o = &OPTIONS[i];
        char name[128];
        if (o->live || same_value(o, config, running)) continue;
        memcpy(field_of(config, o), field_of_const(running, o), field_size(o));
        snprintf(name, sizeof name, "%s.%s", o->section, o->name);
        if (kept != NULL) kept(context, name);
    }
}

/* ---- combinations of options
 * ----------------------------------------------------------------------- */

bool td_address_parse(const char *address, char *host, uint16_t *port)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || !isdigit((unsigned char)colon[1]) || strlen(colon) > 6) return false;
    char *end;
    const unsigned long number = strtoul(colon + 1, &end, 10);
    if (*end != '\0' || number > 65535) return false;

    size_t length = (size_t)(colon - address);
    if (length >= TD_CONFIG_TEXT_SIZE) return false;
    /* an IPv6 address holds colons and so is in brackets */
    const bool bracketed = length >= 2 && address[0] == '[' && colon[-1] == ']';
    if (bracketed) address++, length -= 2;
    if (!bracketed && memchr(address, ':', length) != NULL) return false;
    if (length == 0) return false;
    for (size_t i = 0; i < length; i++)
        if (isspace((unsigned char)address[i]) || strchr("[]/", address[i]) != NULL) return false;
    memcpy(host, address, length);
    host[length] = '\0';
    *port = (uint16_t)number;
    return true;
}

bool td_url_parse(const char *url, td_url *parsed)
{
    static const char *const SCHEMES[] = {"http://", "https://"};
    char authority[TD_CONFIG_TEXT_SIZE + 8];
    *parsed = (td_url){0};
    parsed->tls = strncmp(url, SCHEMES[1], strlen(SCHEMES[1])) == 0;
    const char *scheme = SCHEMES[parsed->tls];
    if (strncmp(url, scheme, strlen(scheme)) != 0 || strlen(url) >= TD_CONFIG_TEXT_SIZE)
        return false;
    for (const char *c = url; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~' || strchr("?#@", *c) != NULL) return false;
    url += strlen(scheme);
    const size_t length = strcspn(url, "/");
    const char *path = url + length;
    snprintf(authority, sizeof authority, "%.*s", (int)length, url);
    /* a port follows the last colon outside of brackets */
    const char *bracket = strrchr(authority, ']'), *colon = strrchr(authority, ':');
    if (colon == NULL || colon < bracket)
        snprintf(authority + length, sizeof authority - length, ":%d", parsed->tls ? 443 : 80);
    if (!td_address_parse(authority, parsed->host, &parsed->port) || parsed->port == 0)
        return false;
    size_t kept = strlen(path);
    while (kept > 0 && path[kept - 1] == '/') kept--;
    memcpy(parsed->path, path, kept);
    return true;
}

static tb_status check_address(const char *name, const char *address, tb_error *error)
{
    char host[TD_CONFIG_TEXT_SIZE];
    uint16_t port;
    if (*address == '\0' || td_address_parse(address, host, &port)) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, name,
                         "[server] %s = '%s' must be HOST:PORT or [IPv6 ADDRESS]:PORT",
                         strchr(name, '.') + 1, address);
}

static tb_status check_readable(const char *name, const char *path, tb_error *error)
{
    if (*path == '\0' || access(path, R_OK) == 0) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, name, "[tls] %s = '%s' cannot be read: %s",
                         strchr(name, '.') + 1, path, strerror(errno));
}

static tb_status check_tls(const td_config *c, tb_error *error)
{
    const bool certificate = *c->tls_certificate != '\0', key = *c->tls_key != '\0';
    if (certificate != key)
        return tb_fail_field(
            error, TB_INVALID_ARGUMENT, certificate ? "tls.key" : "tls.certificate",
            "[tls] %s is given, so %s must be, too", certificate ? "certificate" : "key",
            certificate ? "key" : "certificate");
    if (*c->tls_client_ca != '\0' && !certificate)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "tls.certificate",
                             "[tls] client_ca is given, so certificate and key must be, too");
    tb_status status = check_readable("tls.certificate", c->tls_certificate, error);
    if (status == TB_OK) status = check_readable("tls.key", c->tls_key, error);
    if (status == TB_OK) status = check_readable("tls.client_ca", c->tls_client_ca, error);
    return status;
}

static tb_status check_outbox(const td_config *c, tb_error *error)
{
    enum { NODE_LIMIT = 63 };
    const char *url = c->fleet_outbox;
    if (*url != '\0' && strncmp(url, "postgresql://", 13) != 0 &&
        strncmp(url, "postgres://", 11) != 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "fleet.outbox",
                             "[fleet] outbox must begin with postgresql://");
    if (strlen(c->fleet_node) > NODE_LIMIT)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "fleet.node",
                             "[fleet] node = '%s' is longer than %d bytes", c->fleet_node,
                             NODE_LIMIT);
    return TB_OK;
}

static tb_status check_otlp(const td_config *c, tb_error *error)
{
    td_url ignored;
    if (*c->otlp_endpoint == '\0' || td_url_parse(c->otlp_endpoint, &ignored)) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "otlp.endpoint",
                         "[otlp] endpoint = '%s' must be http://HOST:PORT or https://HOST:PORT, "
                         "with or without a path",
                         c->otlp_endpoint);
}

tb_status td_config_check(const td_config *c, tb_error *error)
{
    const size_t socket_limit = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    if (*c->grpc_address == '\0' && *c->grpc_socket == '\0' && *c->http_address == '\0')
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "server.grpc_address",
                             "[server] grpc_address, grpc_socket and http_address are all empty: "
                             "nothing to listen on");
    tb_status status = check_address("server.grpc_address", c->grpc_address, error);
    if (status == TB_OK) status = check_address("server.http_address", c->http_address, error);
    if (status == TB_OK) status = check_tls(c, error);
    if (status != TB_OK) return status;
    if (strlen(c->grpc_socket) > socket_limit)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "server.grpc_socket",
                             "[server] grpc_socket = '%s' is longer than %zu bytes", c->grpc_socket,
                             socket_limit);
    if (c->session_ttl_seconds > c->session_maximum_ttl_seconds)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "sessions.ttl_seconds",
                             "[sessions] ttl_seconds = %g is above maximum_ttl_seconds = %g",
                             c->session_ttl_seconds, c->session_maximum_ttl_seconds);
    if (c->unpack_bytes < c->message_bytes)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "limits.unpack_bytes",
                             "[limits] unpack_bytes = %" PRIu64 " is below message_bytes = %" PRIu64
                             ", so the largest request could never be read",
                             c->unpack_bytes, c->message_bytes);
    status = check_outbox(c, error);
    if (status == TB_OK) status = check_otlp(c, error);
    return status == TB_OK ? td_replica_check(c, error) : status;
}
