/* The loops of the stored iterations in float. */
#define TB_SINGLE 1
#include "solve/stored/sweeps.h"
