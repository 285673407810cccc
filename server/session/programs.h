/* Programs of Modelica in memory, by the SHA-256 of their source: the last PROGRAMS used stay. */
#ifndef SERVER_PROGRAMS_H
#define SERVER_PROGRAMS_H

#include "tribo_function.h"

typedef struct td_programs td_programs;

tb_status td_programs_create(td_programs **, tb_error *);
/* After all calls have ended; NULL is fine. */
void td_programs_destroy(td_programs *);

/* Compiles a source, or finds its program. The caller gives the program back by release. */
tb_status td_programs_compile(td_programs *, const char *source, size_t size, const char *name,
                              tb_function_program **, tb_error *);
/* NOT_FOUND for a key that is not in memory. */
tb_status td_programs_find(td_programs *, const char *key, tb_function_program **, tb_error *);
void td_programs_release(td_programs *, tb_function_program *);
/* The programs, last used first; each is held until its release. Returns their number. */
int td_programs_list(td_programs *, tb_function_program **list, int most);

enum { TD_PROGRAMS = 64 };

#endif
