/* Plays the lanes of a card's team (base/team.h with TB_TEAM_PLAYED). */
#ifndef TEAM_PLAY_H
#define TEAM_PLAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Calls work(context, lane) once for every lane, all at once, and waits for them. `lanes` up to
 * 32. */
void team_play(int32_t lanes, void (*work)(void *context, int32_t lane), void *context);
/* Fast memory of the teams to come, `bytes` of it; none at first. */
void team_play_fast(void *memory, size_t bytes);
#ifdef __cplusplus
}
#endif

#endif
