/* Threads that play the lanes of a card's blocks (base/grid.h with TB_GRID_PLAYED). */
#ifndef GRID_PLAY_H
#define GRID_PLAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The grid of the launches to come: blocks, and lanes of each; both up to 8. */
void grid_choose(int32_t blocks, int32_t lanes);
/* Calls work(argument) once for every lane, all at once, and waits for them. */
void grid_play(void (*work)(const void *argument), const void *argument);

#ifdef __cplusplus
}
#endif

#endif
