// Field mode with threads that play the lanes of a card (grid_play.h), in double.
#define TB_GRID_PLAYED    1
#define field_played_step field_lanes_step
#include "field_play.h"
