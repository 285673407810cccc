/* The table of methods. */
#include "handlers/handlers.h"

#include <string.h>

#include "tribo/v1/function.pb-c.h"
#include "tribo/v1/grasp.pb-c.h"
#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/simulation.pb-c.h"
#include "tribo/v1/solve.pb-c.h"

#define UNARY(Service, service_, Method, method, scope_)                                           \
    {.service = "tribo.v1." #Service,                                                              \
     .name = #Method,                                                                              \
     .scope = TD_SCOPE_##scope_,                                                                   \
     .input = &tribo__v1__##method##_request__descriptor,                                          \
     .output = &tribo__v1__##method##_response__descriptor,                                        \
     .message = td_##service_##_##method},

#define STREAM(Service, service_, Method, method, scope_, client, server)                          \
    {.service = "tribo.v1." #Service,                                                              \
     .name = #Method,                                                                              \
     .client_streaming = client,                                                                   \
     .server_streaming = server,                                                                   \
     .scope = TD_SCOPE_##scope_,                                                                   \
     .input = &tribo__v1__##method##_request__descriptor,                                          \
     .output = &tribo__v1__##method##_response__descriptor,                                        \
     .message = td_##service_##_##method,                                                          \
     .half_closed = td_##service_##_##method##_half_closed,                                        \
     .writable = td_##service_##_##method##_writable,                                              \
     .cancelled = td_##service_##_##method##_cancelled},

static const td_method METHODS[] = {TD_UNARY_LIST(UNARY) TD_STREAM_LIST(STREAM){.name = NULL}};

const td_method *td_methods(void)
{
    return METHODS;
}

const td_method *td_method_find(const char *path)
{
    if (*path == '/') path++;
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return NULL;
    const size_t length = (size_t)(slash - path);
    for (const td_method *m = METHODS; m->name != NULL; m++)
        if (strcmp(slash + 1, m->name) == 0 && strncmp(path, m->service, length) == 0 &&
            m->service[length] == '\0')
            return m;
    return NULL;
}
