/* Programs of Modelica in memory, by the SHA-256 of their source: the last PROGRAMS used stay. And arrays
 * that calls of their functions keep, by caller, session and name (arrays.c). */
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

/* ---- kept arrays ---- */

typedef struct td_server td_server;
typedef struct td_arrays td_arrays;

enum { TD_ARRAY_NAME = 80 }; /* longest name of a session or an array */

/* Key of a kept array: its caller, the session that the caller chose, and the array's name. */
typedef struct td_array_key {
    const char *caller, *session, *name;
} td_array_key;

tb_status td_arrays_create(td_server *, td_arrays **, tb_error *);
/* After all calls have ended; NULL is fine. */
void td_arrays_destroy(td_arrays *);

/* INVALID_ARGUMENT with the field for an empty or too long session or name. */
tb_status td_arrays_check(const td_array_key *, tb_error *);
/* Keeps an array, held once more, in place of the one with the key. The longest unused go where the
 * limits ask for it, those of the caller first; RESOURCE_EXHAUSTED where that is not enough. */
tb_status td_arrays_put(td_arrays *, const td_array_key *, tb_function_array *, tb_error *);
/* The array with a key; the caller releases it. NOT_FOUND. */
tb_status td_arrays_find(td_arrays *, const td_array_key *, tb_function_array **, tb_error *);
/* Forgets the array with the key, or with a NULL name all of the session; adds to count and bytes. */
void td_arrays_forget(td_arrays *, const td_array_key *, int32_t *count, uint64_t *bytes);
/* Forgets arrays that no call named for [sessions] ttl_seconds. From the reaper. */
void td_arrays_reap(td_arrays *);
/* Up to `most` arrays of a session, last used first, each held until its release; their number. */
int32_t td_arrays_list(td_arrays *, const td_array_key *, char (*names)[TD_ARRAY_NAME + 1],
                       tb_function_array **list, int32_t most);

#endif
