/* See pace.h. */
#include "schedule/pace.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "schedule/scheduler_internal.h"

/* A key selects one of the sets; the least recently used entry of the set is replaced. */
enum { SETS = 64, WAYS = 4, OCTAVES = 24 };

/* Octaves of worlds that a card's measurement reaches on both sides. */
enum { REACH = 2 };

/* One caller's trial blocks all other callers' trials of the key for this time. */
static const int64_t TRIAL_NS = 30000000000;

/* Weight of the latest measurement in the running average: scenes settle and move again. */
static const double LATEST_WEIGHT = 0.25;

/* Averages, and when the last part of them was measured; worlds == 0: none. */
typedef struct measurement {
    double worlds, step_ns;
    int64_t time_ns;
} measurement;

typedef struct pace {
    uint64_t key, used; /* used: by the table's clock; 0: free */
    measurement processors, card[OCTAVES];
    bool tried[2]; /* on the processors, on a card, and when last */
    int64_t tried_ns[2];
} pace;

struct td_paces {
    pthread_mutex_t mutex;
    uint64_t clock;
    pace table[SETS][WAYS];
};

tb_status td_paces_create(td_paces **created, tb_error *error)
{
    *created = calloc(1, sizeof **created);
    if (*created == NULL) return tb_fail_memory(error, sizeof **created, "paces");
    pthread_mutex_init(&(*created)->mutex, NULL);
    return TB_OK;
}

void td_paces_destroy(td_paces *paces)
{
    if (paces == NULL) return;
    pthread_mutex_destroy(&paces->mutex);
    free(paces);
}

/* FNV-1a: a collision of two scenes only causes a wrong estimate. */
uint64_t td_pace_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}

uint64_t td_pace_key(uint64_t hash, const tb_step_options *options)
{
    const uint64_t all = td_options_hash(options);
    uint64_t key = td_pace_hash(hash, &all, sizeof all);
    key ^= key >> 29;
    return key != 0 ? key : 1;
}

/* ---- the table, under its mutex ---- */

/* The key's place; `make` clears one for it where it has none, otherwise that is NULL. */
static pace *find(td_paces *paces, uint64_t key, bool make)
{
    pace *set = paces->table[key % SETS], *oldest = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].used > 0 && set[i].key == key) {
            set[i].used = ++paces->clock;
            return &set[i];
        }
        if (set[i].used < oldest->used) oldest = &set[i];
    }
    if (!make) return NULL;
    *oldest = (pace){.key = key, .used = ++paces->clock};
    return oldest;
}

static int octave_of(double worlds)
{
    const int octave = ilogb(worlds);
    return octave < OCTAVES ? octave : OCTAVES - 1;
}

static void take_in(measurement *m, double worlds, double step_ns, int64_t now_ns)
{
    const double weight = m->worlds > 0 ? LATEST_WEIGHT : 1;
    m->worlds += weight * (worlds - m->worlds);
    m->step_ns += weight * (step_ns - m->step_ns);
    m->time_ns = now_ns;
}

static bool is_there(const measurement *m, int64_t since_ns)
{
    return m->worlds > 0 && m->time_ns >= since_ns;
}

/* More worlds never take a card less long, nor more than in proportion, so measurements of fewer and
 * of more bound the time from both sides, and in between lies the estimate. Where only more have been
 * measured it takes about as long as they did: a card that is not full hardly notices. */
static double on_card(const pace *p, double worlds, int64_t since_ns)
{
    const int octave = octave_of(worlds);
    double least = 0, most = INFINITY;
    bool fewer = false;
    for (int i = octave - REACH; i <= octave + REACH; i++) {
        if (i < 0 || i >= OCTAVES || !is_there(&p->card[i], since_ns)) continue;
        const measurement *m = &p->card[i];
        const double proportional = m->step_ns * worlds / m->worlds;
        least = fmax(least, fmin(m->step_ns, proportional));
        most = fmin(most, fmax(m->step_ns, proportional));
        fewer = fewer || m->worlds <= worlds;
    }
    return least == 0 ? 0 : fewer ? sqrt(least * most) : most;
}

/* ---- in and out ---- */

void td_pace_note(td_paces *paces, uint64_t key, tb_backend_choice backend, int64_t worlds,
                  double step_ns, int64_t now_ns)
{
    if (key == 0 || worlds < 1 || !(step_ns > 0)) return;
    pthread_mutex_lock(&paces->mutex);
    pace *p = find(paces, key, true);
    const double n = (double)worlds;
    if (backend == TB_BACKEND_CPU)
        take_in(&p->processors, 1, step_ns / n, now_ns);
    else
        take_in(&p->card[octave_of(n)], n, step_ns, now_ns);
    pthread_mutex_unlock(&paces->mutex);
}

double td_pace_step_ns(td_paces *paces, uint64_t key, tb_backend_choice backend, int64_t worlds,
                       int64_t since_ns)
{
    double step_ns = 0;
    if (key == 0 || worlds < 1) return 0;
    pthread_mutex_lock(&paces->mutex);
    const pace *p = find(paces, key, false);
    if (p != NULL && backend != TB_BACKEND_CPU)
        step_ns = on_card(p, (double)worlds, since_ns);
    else if (p != NULL && is_there(&p->processors, since_ns))
        step_ns = p->processors.step_ns * (double)worlds;
    pthread_mutex_unlock(&paces->mutex);
    return step_ns;
}

bool td_pace_try(td_paces *paces, uint64_t key, tb_backend_choice backend, int64_t now_ns)
{
    const int place = backend != TB_BACKEND_CPU;
    bool first = false;
    pthread_mutex_lock(&paces->mutex);
    pace *p = find(paces, key, false);
    if (p != NULL && !(p->tried[place] && now_ns - p->tried_ns[place] < TRIAL_NS)) {
        first = p->tried[place] = true;
        p->tried_ns[place] = now_ns;
    }
    pthread_mutex_unlock(&paces->mutex);
    return first;
}
