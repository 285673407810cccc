/* See edge.h. */
#include "call/edge.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool td_edge_forwards(const td_config *config, const char *name, size_t size)
{
    for (const char *item = config->forwarding_headers; *item != '\0';) {
        item += strspn(item, " ,");
        const size_t length = strcspn(item, " ,");
        if (length > 0 && length == size && strncasecmp(item, name, size) == 0) return true;
        item += length;
    }
    return false;
}

uint64_t td_edge_forwarding_lengths(const td_config *config)
{
    uint64_t lengths = 0;
    for (const char *item = config->forwarding_headers; *item != '\0';) {
        item += strspn(item, " ,");
        const size_t length = strcspn(item, " ,");
        if (length > 0) lengths |= UINT64_C(1) << (length < 63 ? length : 63);
        item += length;
    }
    return lengths;
}

/* A name or address of this machine's loopback, with a port or without, and nothing behind it. */
static bool host_is_loopback(const char *host)
{
    static const char *const NAMES[] = {"localhost", "[::1]"};
    const char *rest = host;
    if (host == NULL || *host == '\0') return true;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strncasecmp(host, NAMES[i], strlen(NAMES[i])) == 0) rest = host + strlen(NAMES[i]);
    if (rest == host && strncmp(host, "127.", 4) == 0) rest = host + strspn(host, "0123456789.");
    if (rest == host) return false;
    return *rest == '\0' || (*rest == ':' && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

bool td_edge_is_loopback(const td_config *config, bool connection, bool forwarded, const char *host)
{
    return connection && !config->behind_proxy && !forwarded && host_is_loopback(host);
}

bool td_edge_host_is_sound(const char *host)
{
    for (const char *c = host; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || *c == 127 || strchr("@/\\?#", *c) != NULL) return false;
    return true;
}

bool td_edge_name_is_sound(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (name[i] == '\0' ||
            (!isalnum((unsigned char)name[i]) && strchr("!#$%&'*+-.^_`|~", name[i]) == NULL))
            return false;
    return size > 0;
}

static bool is_named(const char *name, size_t size, const char *word)
{
    return strlen(word) == size && strncasecmp(name, word, size) == 0;
}

void td_framing_add(td_framing *framing, const char *name, size_t name_size, const char *value,
                    size_t size)
{
    if (!td_edge_name_is_sound(name, name_size)) framing->bad_name = true;
    if (is_named(name, name_size, "Host")) framing->hosts++;
    if (is_named(name, name_size, "Content-Length")) {
        framing->lengths++;
        for (size_t i = 0; i < size; i++)
            if (!isdigit((unsigned char)value[i])) framing->bad_length = true;
        if (size == 0) framing->bad_length = true;
    }
    if (is_named(name, name_size, "Transfer-Encoding")) {
        framing->codings++;
        if (!is_named(value, size, "chunked")) framing->unknown_coding = true;
    }
}

const char *td_framing_fault(const td_framing *framing)
{
    if (framing->bad_name) return "a header's name holds a character that no name has";
    if (framing->hosts > 1) return "there are several Host headers";
    if (framing->lengths > 1) return "there are several Content-Length headers";
    if (framing->bad_length) return "Content-Length is no number";
    if (framing->lengths > 0 && framing->codings > 0)
        return "there are both Content-Length and Transfer-Encoding";
    if (framing->codings > 1 || framing->unknown_coding)
        return "Transfer-Encoding is not just 'chunked'";
    return NULL;
}
