/* Marks session ids with a replica and a checksum, and finds the address of a replica. See
 * replica.h. */
#include "ops/replica.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { CHECKED_BYTES = 12 };

/* ---- options ---- */

/* The number at the end of a text such as "2" or "tribod-2"; -1 if there is none below the limit. */
static int32_t number_at_end(const char *text)
{
    const char *digits = text + strlen(text);
    while (digits > text && isdigit((unsigned char)digits[-1])) digits--;
    if (*digits == '\0' || strlen(digits) > 5) return -1;
    const int32_t number = (int32_t)strtol(digits, NULL, 10);
    return number < TD_REPLICA_LIMIT ? number : -1;
}

int32_t td_replica_number(const td_config *config)
{
    return *config->fleet_addresses != '\0' ? number_at_end(config->fleet_replica) : -1;
}

/* The address of a replica: the pattern with its number, or its entry of the list. */
static bool address_of(const char *addresses, int32_t number, char address[TD_CONFIG_TEXT_SIZE])
{
    const char *place = strstr(addresses, "{}");
    if (place != NULL) {
        const int length = snprintf(address, TD_CONFIG_TEXT_SIZE, "%.*s%d%s",
                                    (int)(place - addresses), addresses, number, place + 2);
        return length > 0 && length < TD_CONFIG_TEXT_SIZE;
    }
    const char *entry = addresses;
    for (int32_t i = 0; i < number; i++) {
        entry = strchr(entry, ',');
        if (entry == NULL) return false;
        entry++;
    }
    while (*entry == ' ') entry++;
    size_t length = strcspn(entry, ",");
    while (length > 0 && entry[length - 1] == ' ') length--;
    if (length >= TD_CONFIG_TEXT_SIZE) return false;
    memcpy(address, entry, length);
    address[length] = '\0';
    return length > 0;
}

tb_status td_replica_check(const td_config *config, tb_error *error)
{
    char address[TD_CONFIG_TEXT_SIZE], host[TD_CONFIG_TEXT_SIZE];
    uint16_t port;
    const bool named = *config->fleet_replica != '\0', listed = *config->fleet_addresses != '\0';
    if (!named && !listed) return TB_OK;
    if (named != listed)
        return tb_fail_field(error, TB_INVALID_ARGUMENT,
                             named ? "fleet.addresses" : "fleet.replica",
                             "[fleet] %s is given, so %s must be, too",
                             named ? "replica" : "addresses", named ? "addresses" : "replica");
    const int32_t number = number_at_end(config->fleet_replica);
    if (number < 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "fleet.replica",
                             "[fleet] replica = '%s' must end in a number from 0 to %d",
                             config->fleet_replica, TD_REPLICA_LIMIT - 1);
    if (!address_of(config->fleet_addresses, number, address))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "fleet.addresses",
                             "[fleet] addresses = '%s' has no address for replica %d",
                             config->fleet_addresses, number);
    if (!td_address_parse(address, host, &port))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "fleet.addresses",
                             "[fleet] addresses: '%s' of replica %d must be HOST:PORT or [IPv6 "
                             "ADDRESS]:PORT",
                             address, number);
    return TB_OK;
}

/* ---- ids ---- */

/* FNV-1a of the id's random bytes, folded to 16 bits. */
static uint16_t checksum(const uint8_t *id)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < CHECKED_BYTES; i++) hash = (hash ^ id[i]) * 16777619u;
    return (uint16_t)(hash ^ hash >> 16);
}

static void put_16(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

void td_replica_mark(const td_config *config, uint8_t id[TD_REPLICA_ID_BYTES])
{
    const int32_t number = td_replica_number(config);
    if (number < 0) return;
    put_16(id + CHECKED_BYTES, checksum(id));
    put_16(id + CHECKED_BYTES + 2, (uint32_t)number);
}

bool td_replica_of_id(const td_config *config, const uint8_t id[TD_REPLICA_ID_BYTES],
                      char address[TD_CONFIG_TEXT_SIZE])
{
    uint8_t expected[2];
    const int32_t own = td_replica_number(config);
    const int32_t number = id[CHECKED_BYTES + 2] << 8 | id[CHECKED_BYTES + 3];
    put_16(expected, checksum(id));
    if (own < 0 || number == own || memcmp(expected, id + CHECKED_BYTES, sizeof expected) != 0)
        return false;
    return address_of(config->fleet_addresses, number, address);
}

/* ---- errors ---- */

/* A tb_error of this kind has no file, so its `file` carries the address to the transports. */
#define MARK "replica "

tb_status td_replica_fail(tb_error *error, const char *field, const char *id, const char *address)
{
    tb_fail_field(error, TB_NOT_FOUND, field, "%s is not here: the replica at %s has it", id,
                  address);
    snprintf(error->file, sizeof error->file, MARK "%s", address);
    return TB_NOT_FOUND;
}

const char *td_replica_of_error(const tb_error *error)
{
    const size_t length = strlen(MARK);
    const bool marked = error->status == TB_NOT_FOUND && strncmp(error->file, MARK, length) == 0;
    return marked ? error->file + length : "";
}
