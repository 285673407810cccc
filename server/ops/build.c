/* Holds the commit and the compiler; the only file to recompile when the commit changes. */
#include "ops/build.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

const char *td_build(void)
{
    return TB_COMMIT " " COMPILER;
}
