/* A plug-in of another ABI: what the library must not call. Nothing but the number is there. */
#include <stdint.h>

extern const struct other_backend {
    int32_t abi;
    const char *name;
} tb_backend_plugin;

const struct other_backend tb_backend_plugin = {.abi = 1 << 20, .name = "other"};
