/* The standing of a connection's best caller, which decides whose idle connection makes room. */
#include "call/auth.h"
#include "call/auth_internal.h"

#include <string.h>

td_standing td_auth_standing(const td_caller *caller)
{
    return strcmp(caller->name, TD_ANONYMOUS) == 0 ? TD_STANDING_ANONYMOUS : TD_STANDING_KEY;
}
