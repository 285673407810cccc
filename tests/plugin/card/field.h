/* What a test asks of the played card's field mode, found by its name in the plug-in. */
#ifndef PLAYED_FIELD_H
#define PLAYED_FIELD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Times that contacts came from records, because no step before had left them on the card. */
__attribute__((visibility("default"))) extern int64_t played_field_imports;

#ifdef __cplusplus
}
#endif

#endif
