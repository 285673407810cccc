/* Programs of Modelica in memory. */
#include "session/programs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"

/* A program and its users. The table itself counts as one until it forgets the program. */
typedef struct entry {
    tb_function_program *program;
    uint64_t used; /* time of the last use, by a counter */
    int users;
    bool kept; /* in the table */
} entry;

struct td_programs {
    pthread_mutex_t lock;
    uint64_t uses;
    entry *entries;
    int32_t count, capacity;
};

tb_status td_programs_create(td_programs **made, tb_error *error)
{
    *made = calloc(1, sizeof **made);
    if (*made == NULL) return tb_fail_memory(error, sizeof **made, "the programs");
    pthread_mutex_init(&(*made)->lock, NULL);
    return TB_OK;
}

void td_programs_destroy(td_programs *programs)
{
    if (programs == NULL) return;
    for (int32_t k = 0; k < programs->count; k++) tb_function_destroy(programs->entries[k].program);
    free(programs->entries);
    pthread_mutex_destroy(&programs->lock);
    free(programs);
}

/* takes a hold on the program with a key; under the lock */
static tb_function_program *take(td_programs *programs, const char *key)
{
    for (int32_t k = 0; k < programs->count; k++) {
        entry *e = &programs->entries[k];
        if (!e->kept || strcmp(tb_function_key(e->program), key) != 0) continue;
        e->used = ++programs->uses;
        e->users++;
        return e->program;
    }
    return NULL;
}

/* forgets the program that was used longest ago while too many are kept; under the lock */
static void forget(td_programs *programs)
{
    for (;;) {
        int kept = 0, oldest = -1;
        for (int32_t k = 0; k < programs->count; k++) {
            const entry *e = &programs->entries[k];
            if (!e->kept) continue;
            kept++;
            if (oldest < 0 || e->used < programs->entries[oldest].used) oldest = k;
        }
        if (kept <= TD_PROGRAMS) return;
        entry *e = &programs->entries[oldest];
        e->kept = false;
        if (e->users > 0) continue;
        tb_function_destroy(e->program);
        *e = programs->entries[--programs->count];
    }
}

static tb_status add(td_programs *programs, tb_function_program *program, tb_error *error)
{
    if (programs->count == programs->capacity) {
        entry *grown =
            tb_grow(programs->entries, programs->count + 1, &programs->capacity, sizeof *grown);
        if (grown == NULL) return tb_fail_memory(error, sizeof *grown, "a program");
        programs->entries = grown;
    }
    programs->entries[programs->count++] =
        (entry){.program = program, .used = ++programs->uses, .users = 1, .kept = true};
    forget(programs);
    return TB_OK;
}

tb_status td_programs_find(td_programs *programs, const char *key, tb_function_program **program,
                           tb_error *error)
{
    pthread_mutex_lock(&programs->lock);
    *program = take(programs, key);
    pthread_mutex_unlock(&programs->lock);
    if (*program != NULL) return TB_OK;
    return tb_fail_field(error, TB_NOT_FOUND, "key", "no program '%.80s' in memory", key);
}

tb_status td_programs_compile(td_programs *programs, const char *source, size_t size,
                              const char *name, tb_function_program **program, tb_error *error)
{
    char key[65];
    tb_sha256_hex(source, size, key);
    if (td_programs_find(programs, key, program, NULL) == TB_OK) return TB_OK;
    tb_function_program *made = NULL;
    tb_status status = tb_function_compile(source, size, name, &made, NULL, error);
    if (status != TB_OK) return status;
    pthread_mutex_lock(&programs->lock);
    *program = take(programs, key); /* another caller may have been faster */
    if (*program == NULL) {
        status = add(programs, made, error);
        if (status == TB_OK) {
            *program = made;
            made = NULL;
        }
    }
    pthread_mutex_unlock(&programs->lock);
    tb_function_destroy(made);
    return status;
}

void td_programs_release(td_programs *programs, tb_function_program *program)
{
    tb_function_program *unused = NULL;
    if (program == NULL) return;
    pthread_mutex_lock(&programs->lock);
    for (int32_t k = 0; k < programs->count; k++) {
        entry *e = &programs->entries[k];
        if (e->program != program) continue;
        if (--e->users == 0 && !e->kept) {
            unused = e->program;
            *e = programs->entries[--programs->count];
        }
        break;
    }
    pthread_mutex_unlock(&programs->lock);
    tb_function_destroy(unused);
}

int td_programs_list(td_programs *programs, tb_function_program **list, int most)
{
    int listed = 0;
    pthread_mutex_lock(&programs->lock);
    for (uint64_t before = UINT64_MAX; listed < most; listed++) {
        entry *next = NULL;
        for (int32_t k = 0; k < programs->count; k++) {
            entry *e = &programs->entries[k];
            if (e->kept && e->used < before && (next == NULL || e->used > next->used)) next = e;
        }
        if (next == NULL) break;
        before = next->used;
        next->users++;
        list[listed] = next->program;
    }
    pthread_mutex_unlock(&programs->lock);
    return listed;
}
