/* tribo info --server: version, devices and permissions of a daemon. The daemon answers every
 * caller, even without a key, so the command also checks that a daemon is reachable and reports its
 * build. */
#include "info/info_server.h"

#include <stdio.h>

#include "common/cli.h"
#include "common/json.h"
#include "tribo/v1/simulation.pb-c.h"

/* A clock that was set back while the daemon ran does not make its age negative. */
static double uptime(const Tribo__V1__GetServerInfoResponse *info)
{
    const int64_t age_us = info->time_us - info->start_time_us;
    return age_us > 0 ? (double)age_us * 1e-6 : 0;
}

/* ---- JSON ---- */

static json_t *devices_json(const Tribo__V1__GetServerInfoResponse *info)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < info->n_devices; i++) {
        const Tribo__V1__DeviceInfo *d = info->devices[i];
        json_t *object = json_object();
        json_object_set_new(object, "name", json_text(d->name));
        json_object_set_new(object, "description", json_text(d->description));
        json_object_set_new(object, "queued", json_integer(d->queued));
        json_object_set_new(object, "memory_bytes", json_integer((json_int_t)d->memory_bytes));
        json_array_append_new(devices, object);
    }
    return devices;
}

static json_t *solvers_json(const Tribo__V1__GetServerInfoResponse *info)
{
    json_t *solvers = json_array();
    for (size_t i = 0; i < info->n_solvers; i++) {
        json_t *object = json_object();
        json_object_set_new(object, "name", json_text(info->solvers[i]->name));
        json_object_set_new(object, "summary", json_text(info->solvers[i]->summary));
        json_array_append_new(solvers, object);
    }
    return solvers;
}

static json_t *limits_json(const Tribo__V1__Limits *l)
{
    json_t *object = json_object();
    json_object_set_new(object, "message_bytes", json_integer((json_int_t)l->message_bytes));
    json_object_set_new(object, "asset_bytes", json_integer((json_int_t)l->asset_bytes));
    json_object_set_new(object, "sessions", json_integer(l->sessions));
    json_object_set_new(object, "sessions_per_client", json_integer(l->sessions_per_client));
    json_object_set_new(object, "worlds_per_session", json_integer(l->worlds_per_session));
    json_object_set_new(object, "queue_length", json_integer(l->queue_length));
    json_object_set_new(object, "session_ttl_seconds", json_finite(l->session_ttl_seconds));
    return object;
}

static void print_json(const char *address, const Tribo__V1__GetServerInfoResponse *info)
{
    json_t *object = json_object();
    json_object_set_new(object, "server", json_text(address));
    json_object_set_new(object, "version", json_text(info->version));
    json_object_set_new(object, "build", json_text(info->build));
    json_object_set_new(object, "start_time_us", json_integer(info->start_time_us));
    json_object_set_new(object, "uptime_seconds", json_finite(uptime(info)));
    json_object_set_new(object, "draining", json_boolean(info->draining));
    json_object_set_new(object, "sessions", json_integer(info->sessions));
    json_object_set_new(object, "devices", devices_json(info));
    json_object_set_new(object, "solvers", solvers_json(info));
    if (info->limits != NULL) json_object_set_new(object, "limits", limits_json(info->limits));
    json_print(stdout, object);
}

/* ---- text ---- */

static void print_limits(const Tribo__V1__Limits *l)
{
    const double mebibyte = 1 << 20;
    printf("\nlimits     messages of %.6g MiB, assets of %.6g MiB\n"
           "           %d sessions, %d of one client, each of %d worlds and %.6g s at most\n"
           "           %d requests waiting\n",
           (double)l->message_bytes / mebibyte, (double)l->asset_bytes / mebibyte, (int)l->sessions,
           (int)l->sessions_per_client, (int)l->worlds_per_session, l->session_ttl_seconds,
           (int)l->queue_length);
}

static void print_text(const char *address, const Tribo__V1__GetServerInfoResponse *info)
{
    char started[32];
    printf("tribod %s at %s%s\n", info->version, address, info->draining ? ", DRAINING" : "");
    printf("build      %s\n", info->build);
    printf("up         %.0f s, since %s UTC\n", uptime(info),
           remote_time(info->start_time_us, started));
    printf("sessions   %d\n\n", (int)info->sessions);
    for (size_t i = 0; i < info->n_devices; i++) {
        const Tribo__V1__DeviceInfo *d = info->devices[i];
        printf("%-10s %-10s %s, %d waiting\n", i == 0 ? "devices" : "", d->name, d->description,
               (int)d->queued);
    }
    for (size_t i = 0; i < info->n_solvers; i++)
        printf("%-10s %-10s %s\n", i == 0 ? "solvers" : "", info->solvers[i]->name,
               info->solvers[i]->summary);
    if (info->limits != NULL) print_limits(info->limits);
}

tb_status info_server(const remote_options *options, bool json, tb_error *error)
{
    Tribo__V1__GetServerInfoRequest request = TRIBO__V1__GET_SERVER_INFO_REQUEST__INIT;
    Tribo__V1__GetServerInfoResponse *info = NULL;
    tbc_client *client = NULL;
    tb_status status = remote_connect(options, &client, error);
    if (status == TB_OK)
        status = TBC_CALL(client, "tribo.v1.Simulation/GetServerInfo", &request,
                          get_server_info_response, &info, error);
    if (status == TB_OK && json) print_json(remote_address(options), info);
    if (status == TB_OK && !json) print_text(remote_address(options), info);
    tbc_free(info);
    tbc_disconnect(client);
    return status;
}
