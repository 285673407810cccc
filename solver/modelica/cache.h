/* The folder of compiled code: objects of the C compiler and of NVRTC, each named by a hash of all that it
 * was made from. */
#ifndef TB_MODELICA_CACHE_H
#define TB_MODELICA_CACHE_H

#include "tribo_function.h"

enum { MO_PATH_BYTES = 4096 };

/* Makes the folder; false: there is none, and code is kept by its program alone. */
bool tb_mo_cache_folder(const tb_function_options *options, char *path, size_t size);
/* Whether a file is regular and this user alone can have written it. */
bool tb_mo_cache_owns(const char *path);
/* Whether a file of the folder is compiled code, by its name: 64 digits and ".so" or ".cubin". */
bool tb_mo_cache_holds(const char *name);
/* Removes the files that were used longest ago, until the others fit into options->cache_bytes. */
void tb_mo_cache_shrink(const char *folder, const tb_function_options *options);

#endif
