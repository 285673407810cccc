// The physics as a card compiles it, for the processor: the same unit of sources, in C++, with a
// card's memory and errors. Compiled twice, as double and with TB_SINGLE as float.
#include "gpu/batch/physics.h"

#include "device_parts.h"

tb_status device_world_step(device_job *job, tb_certificate *certificate)
{
    device_room room;
    return play_job(job, &room, NULL, NULL, certificate);
}
