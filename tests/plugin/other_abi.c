/* A plug-in of another ABI, which the library must not call. It holds the number alone. */
#include <stdint.h>

extern const struct other_backend {
    int32_t abi;
    const char *name;
} tb_backend_plugin;

const struct other_backend tb_backend_plugin = {.abi = 1 << 20, .name = "other"};
