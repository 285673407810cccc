/* The commit that the command was built from, in a file of its own, so that a new one compiles little. */
#include "common/cli.h"

const char *cli_commit(void)
{
    return TB_COMMIT;
}
