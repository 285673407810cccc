// Large-world mode with one lane that plays a card: the same stages in the same order. Compiled as double
// and, with TB_SINGLE, as float.
#include "large_play.h"
