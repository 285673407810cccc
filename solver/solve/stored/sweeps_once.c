/* The loops of the stored iterations in double. */
#include "solve/stored/sweeps.h"
