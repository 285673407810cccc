/* See descriptors.h. */
#include "wire/descriptors.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/resource.h>

/* Descriptors of the store with its logs, listeners, epolls, the log, files being read, and refused
 * connections that still need an answer. */
enum { RESERVED_DESCRIPTORS = 128 };

int64_t td_descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* the descriptors found so far are enough */
    }
    return td_descriptors_limit();
}

int64_t td_descriptors_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
    return (int64_t)limit.rlim_cur;
}

int64_t td_descriptors_open(void)
{
    int64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) return 0;
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count > 3 ? count - 3 : 0; /* ".", ".." and the folder itself */
}

int32_t td_descriptors_for_connections(int32_t wanted, int transports)
{
    const int64_t limit = td_descriptors_limit();
    if (limit == 0) return wanted;
    const int64_t share = (limit - RESERVED_DESCRIPTORS) / transports;
    if (share < 1) return 1;
    return share < wanted ? (int32_t)share : wanted;
}
