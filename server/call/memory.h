/* Memory budgets of a session, of a client, and of the process ([limits] memory_bytes and its
 * siblings). Large requests are estimated and booked here before allocation, or refused with
 * RESOURCE_EXHAUSTED and the number of bytes. The process's use is the larger of its booked and its
 * resident bytes, so that low estimates do not add up. */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include <stdint.h>

#include "tribo.h"

typedef struct td_server td_server;
typedef struct td_memory td_memory;

tb_status td_memory_create(td_memory **, tb_error *);
void td_memory_destroy(td_memory *); /* NULL is fine */

/* Books `bytes` for a client; `what` names the thing in messages ("the session"). */
tb_status td_memory_take(td_server *, const char *client, uint64_t bytes, const char *what,
                         tb_error *);
void td_memory_give_back(td_server *, const char *client, uint64_t bytes);
uint64_t td_memory_booked(td_server *);

/* Bytes that the process may take: [limits] memory_bytes, or three quarters of the memory of the
 * machine or the control group. */
uint64_t td_memory_limit(const td_server *);
/* Bytes of the process in memory, as /proc/self/statm says; 0 where there is none. */
uint64_t td_memory_resident(void);
/* Memory of a model's worlds once they step, from counts: states, contacts, the solver's share. */
uint64_t td_memory_of_worlds(const tb_model *, int32_t worlds);
/* Memory of worlds on a card. Worlds of soft bodies have their memory on both. */
uint64_t td_memory_on_card(const tb_model *, int32_t worlds);
/* Memory of the parameters of worlds that have their own, in addition to td_memory_of_worlds. */
uint64_t td_memory_of_parameters(const tb_model *, int32_t worlds);
/* Gives memory that was freed back to the system if there is much of it. From the reaper. */
void td_memory_trim(void);

#endif
