/* Functions of the played card's large worlds that tests look up by name in the plug-in. */
#ifndef PLAYED_LARGE_H
#define PLAYED_LARGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times that contacts came from records, because no step before had left them on the card. */
__attribute__((visibility("default"))) extern int64_t played_large_imports;

#ifdef __cplusplus
}
#endif

#endif
