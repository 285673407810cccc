/* Contacts of a substep on a GPU, the host's side: which stages follow each other. The host learns numbers of contacts,
 * bandwidths, results of programs and sums; contacts, impulses and velocities stay on the card. */
#include <string.h>

#include "gpu/grid/fields.h"
#include "gpu/qp/prepared.h"
#include "grid/card/counts.h"

enum { PLACES = TB_SOFT_MOST_ENTRIES, PARITIES = 8 };
static const size_t ARRAY_ALIGNMENT = 256;

/* One of the two programs. */
typedef struct phase {
    int32_t columns, n, half_bandwidth; /* of the Hessian in normals and tangents */
    void *context;                      /* NULL: closed */
    const tb_gpu_program *numbers;
    uint8_t *first;
    int32_t active, warm; /* rows of the last solve */
    tb_soft_program_counts *counts;
} phase;

typedef struct run {
    tb_gpu_soft_world *c;
    tb_gpu_soft g;
    tb_soft_card_contacts *s;
    tb_gpu_soft_counts *seen; /* on the host */
    phase normal, tangential;
    bool left; /* a program is the processor's */
    tb_error *error;
} run;

/* ---- memory ---- */

static void *take(char *memory, size_t *used, size_t count, size_t size)
{
    char *at = memory != NULL ? memory + *used : NULL;
    *used += (count * size + ARRAY_ALIGNMENT - 1) / ARRAY_ALIGNMENT * ARRAY_ALIGNMENT;
    return at;
}

/* Arrays for so many contacts; NULL memory: only their size counts. */
static size_t lay_out(run *r, char *memory)
{
    tb_gpu_soft_projections *p = &r->g.contacts.p;
    tb_soft_sweeps *sweeps = &r->g.contacts.sweeps;
    const size_t n = (size_t)p->found, places = PLACES * n, bodies = (size_t)r->g.bodies;
    const size_t colours = PARITIES * n + 1;
    size_t used = 0;
    p->counts = take(memory, &used, 1, sizeof *p->counts);
    p->key = take(memory, &used, n, sizeof *p->key);
    p->order = take(memory, &used, n, sizeof *p->order);
    p->cell = take(memory, &used, (size_t)r->c->nodes, sizeof *p->cell);
    p->owner = take(memory, &used, places, sizeof *p->owner);
    p->next = take(memory, &used, places, sizeof *p->next);
    p->gap_velocity = take(memory, &used, n, sizeof *p->gap_velocity);
    p->base = take(memory, &used, 3 * n, sizeof *p->base);
    p->position = take(memory, &used, n, sizeof *p->position);
    p->cursor = take(memory, &used, colours, sizeof *p->cursor);
    p->colour = take(memory, &used, n, sizeof *p->colour);
    p->partner = take(memory, &used, n, sizeof *p->partner);
    p->later = take(memory, &used, r->g.contacts.rigids > 0 ? 12 * n : 0, sizeof *p->later);
    p->number = take(memory, &used, n, sizeof *p->number);
    p->which = take(memory, &used, n, sizeof *p->which);
    for (int k = 0; k < 3; k++)
        p->impulse[k] = take(memory, &used, 3 * places, sizeof *p->impulse[k]);
    p->part = take(memory, &used, TB_GPU_SOFT_PARTS * n, sizeof *p->part);
    p->run = take(memory, &used, TB_GPU_SOFT_PARTS * (n / TB_SOFT_CONTACT_RUN + 1), sizeof *p->run);
    p->push_rate = take(memory, &used, bodies, sizeof *p->push_rate);
    r->normal.first = take(memory, &used, n, 1);
    r->tangential.first = take(memory, &used, 4 * n, 1);
    sweeps->contacts = take(memory, &used, n, sizeof *sweeps->contacts);
    sweeps->shares = take(memory, &used, places, sizeof *sweeps->shares);
    sweeps->change = take(memory, &used, 3 * places, sizeof *sweeps->change);
    sweeps->colours = take(memory, &used, colours, sizeof *sweeps->colours);
    r->g.contacts.changed = take(memory, &used, 1, sizeof *r->g.contacts.changed);
    r->g.contacts.meeting = take(memory, &used, TB_GPU_SOFT_MEETING, 1);
    sweeps->number_of_contacts = p->found;
    return used;
}

static tb_status set(run *r, void *memory, int value, size_t bytes)
{
    return tb_gpu_check(&r->c->device, cudaMemsetAsync(memory, value, bytes, r->c->device.stream),
                        "contacts of soft bodies", r->error);
}

static tb_status reserve(run *r, int32_t found)
{
    tb_gpu_soft_world *c = r->c;
    tb_gpu_soft_projections *p = &r->g.contacts.p;
    tb_gpu_buffer *own = &c->contacts[1 - c->now];
    const size_t had = c->projections.capacity;
    p->found = found;
    tb_status status = tb_gpu_reserve(&c->device, &c->projections, lay_out(r, NULL), r->error);
    if (status == TB_OK)
        status = tb_gpu_reserve(&c->device, own, (size_t)found * sizeof *p->contact, r->error);
    if (status == TB_OK)
        status = tb_gpu_reserve_pinned(&c->device, &c->counted, sizeof *r->seen, r->error);
    /* gaps between the members of a struct are read with them */
    if (status == TB_OK && c->projections.capacity > had)
        status = set(r, c->projections.memory, 0, c->projections.capacity);
    if (status != TB_OK) return status;
    (void)lay_out(r, c->projections.memory);
    p->contact = own->memory;
    p->before = c->contacts[c->now].memory;
    p->befores = c->remembered;
    r->seen = c->counted.memory;
    status = set(r, p->counts, 0, sizeof *p->counts);
    if (status == TB_OK && r->g.contacts.rigids > 0)
        status = set(r, p->answers, 0,
                     TB_GPU_SOFT_ANSWERS * (size_t)r->g.contacts.rigids * sizeof *p->answers);
    if (status == TB_OK) status = set(r, p->cell, 0xff, c->nodes * sizeof *p->cell);
    if (status != TB_OK) return status;
    return tb_gpu_soft_upload(c, p->push_rate, r->s->push_rate,
                              (size_t)r->g.bodies * sizeof *p->push_rate, r->error);
}

/* ---- stages ---- */

static tb_status make(run *r, tb_gpu_soft_stage stage)
{
    return tb_gpu_check(&r->c->device,
                        tb_gpu_soft_project(&r->g, stage, r->c->processors, r->c->device.stream),
                        "contacts of soft bodies", r->error);
}

static tb_status make_all(run *r, const tb_gpu_soft_stage *stages, int count)
{
    tb_status status = TB_OK;
    for (int i = 0; i < count && status == TB_OK; i++) status = make(r, stages[i]);
    return status;
}

/* Waits for the counts. */
static tb_status look(run *r)
{
    tb_status status =
        tb_gpu_soft_download(r->c, r->seen, r->g.contacts.p.counts, sizeof *r->seen, r->error);
    if (status == TB_OK) status = tb_gpu_wait(&r->c->device, "contacts of soft bodies", r->error);
    return status;
}

static tb_status gather(run *r, bool normal, bool tangential, int32_t to)
{
    tb_gpu_soft_projections *p = &r->g.contacts.p;
    p->normal = normal;
    p->tangential = tangential;
    p->from = to;
    const tb_status status = make(r, TB_GPU_SOFT_GATHER);
    return status == TB_OK && r->g.contacts.rigids > 0 ? make(r, TB_GPU_SOFT_HALVES) : status;
}

static tb_status sweep(run *r)
{
    const tb_soft_sweeps *s = &r->g.contacts.sweeps;
    const size_t places = PLACES * (size_t)r->g.contacts.p.found;
    const tb_status status = set(r, s->change, 0, 3 * places * sizeof *s->change);
    if (status != TB_OK) return status;
    return tb_gpu_check(&r->c->device,
                        tb_gpu_soft_sweep_contacts(&r->g, r->c->processors, r->c->device.stream),
                        "sweeping over contacts", r->error);
}

/* Contacts in order, their places, and the impulses and sets that the programs begin with. */
static tb_status begin(run *r)
{
    static const tb_gpu_soft_stage FIRST[] = {TB_GPU_SOFT_KEYS,   TB_GPU_SOFT_NUMBER,
                                              TB_GPU_SOFT_RECALL, TB_GPU_SOFT_CELLS,
                                              TB_GPU_SOFT_PLACES, TB_GPU_SOFT_COLOURS};
    static const tb_gpu_soft_stage AGAIN[] = {TB_GPU_SOFT_PUSHED, TB_GPU_SOFT_SUM,
                                              TB_GPU_SOFT_SLOWER};
    tb_gpu_soft_contacts *t = &r->g.contacts;
    t->colours_there = &t->p.counts->colours;
    t->wanted = NULL;
    tb_status status = tb_gpu_soft_link_found(r->c, &r->g, r->error);
    if (status == TB_OK) status = make_all(r, FIRST, sizeof FIRST / sizeof *FIRST);
    if (status == TB_OK && t->rigids > 0) status = make(r, TB_GPU_SOFT_ORDER);
    if (status == TB_OK) status = make(r, TB_GPU_SOFT_SWEPT);
    if (status == TB_OK) status = sweep(r);
    if (status == TB_OK) status = make_all(r, AGAIN, sizeof AGAIN / sizeof *AGAIN);
    t->wanted = &t->p.counts->slower;
    if (status == TB_OK) status = sweep(r);
    if (status == TB_OK && r->s->sets == TB_SOFT_SETS_SWEPT) status = make(r, TB_GPU_SOFT_BACK);
    return status == TB_OK ? look(r) : status;
}

/* ---- programs ---- */

static void point_to(run *r, const phase *h)
{
    tb_gpu_soft_projections *p = &r->g.contacts.p;
    p->columns = h->columns;
    p->f = h->numbers->f;
    p->b = h->numbers->b;
    p->x = h->numbers->x;
    p->value = h->numbers->value;
    p->active = h->numbers->active;
    p->row_first = h->numbers->first;
    p->row_of = h->numbers->of;
    p->first = h->first;
}

static tb_status open_program(run *r, phase *h, int32_t contacts, int32_t reach)
{
    tb_gpu_soft_contacts *t = &r->g.contacts;
    const int32_t columns = h->columns;
    h->n = columns * contacts;
    h->half_bandwidth = columns * (reach + 1) - 1;
    t->which = columns == 1 ? t->p.order : t->p.which;
    tb_soft_count_program(h->counts, h->n, h->half_bandwidth);
    tb_status status =
        tb_gpu_soft_band(r->c, &r->g, contacts, columns, h->half_bandwidth, columns == 2, r->error);
    if (status != TB_OK) return status;
    const tb_qp_card_program program = {
        .program = {.n = h->n, .half_bandwidth = t->half_bandwidth, .constraints = columns * h->n},
        .band = t->band,
        .stride = t->stride,
        .room = &r->s->rooms[columns - 1]};
    status = tb_gpu_program_prepare(&program, r->s->programs, &h->context, &h->numbers, r->error);
    if (status != TB_OK) return status;
    point_to(r, h);
    return make(r, TB_GPU_SOFT_OPEN);
}

static void close_program(phase *h)
{
    if (h->context == NULL) return;
    tb_soft_count_sets(h->counts, h->n, h->active, h->warm);
    tb_gpu_program_close(h->context);
    h->context = NULL;
}

static tb_status solve(run *r, phase *h, int32_t from)
{
    tb_qp_result result = {.status = TB_NOT_CONVERGED};
    point_to(r, h);
    r->g.contacts.p.from = from;
    tb_status status = make(r, TB_GPU_SOFT_FORCE);
    if (status != TB_OK) return status;
    status = tb_gpu_program_run(h->context, &r->c->device, &result, r->error);
    r->left = status == TB_FAILED_PRECONDITION ||
              (status == TB_OK &&
               (result.status != TB_OK || !(result.kkt.relative <= TB_SOFT_PROGRAM_TOLERANCE)));
    if (r->left) return TB_UNSUPPORTED;
    if (status != TB_OK) return status;
    tb_soft_count_solve(h->counts, h->n, h->half_bandwidth, &result);
    h->counts->residual = tb_max(h->counts->residual, result.kkt.relative);
    const int k = h->columns - 1;
    tb_gpu_soft_counts *there = r->g.contacts.p.counts;
    status = make(r, TB_GPU_SOFT_ANSWER);
    if (status == TB_OK) status = set(r, &there->active[k], 0, sizeof there->active[k]);
    if (status == TB_OK) status = set(r, &there->warm[k], 0, sizeof there->warm[k]);
    return status == TB_OK ? make(r, TB_GPU_SOFT_SETS) : status;
}

static void take_counts(run *r, phase *h)
{
    h->active = r->seen->active[h->columns - 1];
    h->warm = r->seen->warm[h->columns - 1];
}

/* (F) for the cells that have an impulse now. */
static tb_status solve_tangential(run *r)
{
    phase *h = &r->tangential;
    tb_status status = make(r, TB_GPU_SOFT_CHOOSE);
    if (status == TB_OK) status = make(r, TB_GPU_SOFT_REACH);
    if (status == TB_OK) status = look(r);
    if (status != TB_OK) return status;
    const int32_t sliding = r->seen->sliding, reach = r->seen->reach[1];
    if (h->context == NULL || r->seen->others > 0) {
        close_program(h);
        if (sliding > 0) status = open_program(r, h, sliding, reach);
    }
    if (status != TB_OK || sliding == 0) return status;
    status = gather(r, true, false, 0);
    return status == TB_OK ? solve(r, h, 0) : status;
}

/* grid/programs.c: project */
static tb_status project(run *r)
{
    const tb_soft_card_contacts *s = r->s;
    tb_gpu_soft_projections *p = &r->g.contacts.p;
    tb_status status = open_program(r, &r->normal, r->seen->contacts, r->seen->reach[0]);
    if (status == TB_OK) status = gather(r, false, true, 1);
    for (int32_t turn = 1; status == TB_OK; turn++) {
        status = solve(r, &r->normal, 1);
        if (status == TB_OK && s->friction > 0) status = solve_tangential(r);
        if (status == TB_OK) status = gather(r, false, true, 2);
        if (status == TB_OK) status = make(r, TB_GPU_SOFT_TEST);
        if (status == TB_OK) status = make(r, TB_GPU_SOFT_SUM);
        if (status == TB_OK) status = look(r);
        if (status != TB_OK) break;
        s->c->projections = turn > s->c->projections ? turn : s->c->projections;
        take_counts(r, &r->normal);
        take_counts(r, &r->tangential);
        const double *sum = r->seen->sum, size = tb_max(sum[0], sum[1]);
        if (sum[2] <= s->tolerance * size) break;
        if (turn == s->most_projections) {
            s->c->status = TB_NOT_CONVERGED;
            break;
        }
        double *swap = p->impulse[1];
        p->impulse[1] = p->impulse[2];
        p->impulse[2] = swap;
    }
    return status;
}

/* Wrenches of the rigid bodies by all contacts, on their way to the host; the next look() waits for them. */
static tb_status answer(run *r)
{
    tb_gpu_soft_projections *p = &r->g.contacts.p;
    const size_t bytes = TB_GPU_SOFT_ANSWERS * (size_t)r->g.contacts.rigids * sizeof *p->answers;
    if (bytes == 0) return TB_OK;
    const tb_status status = make(r, TB_GPU_SOFT_WRENCHES);
    if (status != TB_OK) return status;
    return tb_gpu_soft_download(r->c, r->c->answers.memory, p->answers, bytes, r->error);
}

/* Moves the nodes. */
static tb_status apply(run *r)
{
    tb_soft_card_contacts *s = r->s;
    tb_soft_certificate *c = s->c;
    const size_t numbers = TB_GPU_SOFT_ANSWERS * (size_t)r->g.contacts.rigids;
    tb_status status = gather(r, true, true, 0);
    if (status == TB_OK) status = make(r, TB_GPU_SOFT_APPLY);
    if (status == TB_OK) status = make(r, TB_GPU_SOFT_SUM);
    if (status == TB_OK) status = answer(r);
    if (status == TB_OK) status = look(r);
    if (status != TB_OK) return status;
    if (numbers > 0) memcpy(s->answers, r->c->answers.memory, numbers * sizeof *s->answers);
    const double *sum = r->seen->sum;
    c->contact_work += sum[0];
    memcpy(s->external, sum + 1, sizeof s->external);
    c->pushed += sum[4];
    c->penetration = tb_max(c->penetration, sum[5]);
    c->cone_error = tb_max(c->cone_error, sum[6]);
    return TB_OK;
}

/* ---- a call ---- */

/* The host's contacts of the last substep, where the card has others. */
static tb_status bring(tb_gpu_soft_world *c, const tb_soft_card_contacts *s, tb_error *error)
{
    if (s->befores < 0) return TB_OK;
    const size_t bytes = (size_t)s->befores * sizeof *s->before;
    const tb_status status = tb_gpu_reserve(&c->device, &c->contacts[c->now], bytes, error);
    if (status != TB_OK) return status;
    c->remembered = s->befores;
    return tb_gpu_soft_upload(c, c->contacts[c->now].memory, s->before, bytes, error);
}

/* The search has brought the rigid bodies. */
static void take_rigid(run *r)
{
    const tb_gpu_soft_contacts *from = &r->c->g.contacts;
    tb_gpu_soft_contacts *to = &r->g.contacts;
    to->rigid = from->rigid;
    to->followed = from->followed;
    to->rigids = from->rigids;
    to->p.answers = from->p.answers;
}

static tb_status solve_contacts(run *r)
{
    tb_gpu_soft_world *c = r->c;
    tb_soft_card_contacts *s = r->s;
    int32_t found = 0;
    tb_status status = bring(c, s, r->error);
    if (status == TB_OK && s->search.pairs > 0)
        status = tb_gpu_soft_find_there(c, &s->search, &found, r->error);
    take_rigid(r);
    if (status == TB_OK && found > 0) status = reserve(r, found);
    if (status == TB_OK && found > 0) status = begin(r);
    if (status != TB_OK) return status;
    s->count = found > 0 ? r->seen->contacts : 0;
    if (s->count > 0) status = project(r);
    close_program(&r->normal);
    close_program(&r->tangential);
    return status == TB_OK && s->count > 0 ? apply(r) : status;
}

tb_status tb_gpu_soft_solve(tb_gpu_soft_world *c, tb_soft_card_contacts *s, tb_error *error)
{
    run r = {.c = c, .g = c->g, .s = s, .error = error};
    tb_gpu_soft_projections *p = &r.g.contacts.p;
    r.normal = (phase){.columns = 1, .counts = &s->c->normal};
    r.tangential = (phase){.columns = 2, .counts = &s->c->tangential};
    r.g.contacts.sweeps.friction = s->friction;
    p->dt = s->dt;
    p->least_spacing = s->least_spacing;
    p->most_pushed = s->most_pushed;
    p->sets = s->sets;
    const tb_status status = solve_contacts(&r);
    s->solved = status == TB_OK;
    /* programs that the card does not take, or has no memory for, go to the processor */
    if (status == TB_UNSUPPORTED || status == TB_RESOURCE_EXHAUSTED) return TB_OK;
    if (status != TB_OK) return status;
    c->now = 1 - c->now;
    c->remembered = s->count;
    return TB_OK;
}

tb_status tb_gpu_soft_recall(tb_gpu_soft_world *c, tb_soft_contact *contacts, tb_error *error)
{
    const tb_status status = tb_gpu_soft_download(c, contacts, c->contacts[c->now].memory,
                                                  (size_t)c->remembered * sizeof *contacts, error);
    return status == TB_OK ? tb_gpu_wait(&c->device, "fetching contacts", error) : status;
}
