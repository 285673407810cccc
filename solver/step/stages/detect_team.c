/* Contacts of one world by a team of lanes (base/team.h): the work of detect.c and contact_rows.c,
 * dealt out.
 *
 * Shapes, pairs and contacts are each a list whose items are independent, and every list's length
 * and order are known before the next one is begun: rows of the triangle of pairs give bits, bits
 * give pairs, pairs give counts of points (search_team.c), counts give every contact its block and
 * rows. So lanes write to the places where a single lane would write. */
#ifdef TB_DEVICE

#include "step/stages/detect/near_list.h"

/* ---- room ---- */

/* Reserves memory for the contacts behind the present rows. */
TB_STATIC tb_status make_room(tb_world *w, const tb_near_list *list)
{
    if (TB_LEADER) {
        w->first_contact_block = w->number_of_blocks;
        w->contact_rows = w->number_of_rows;
        w->number_of_contacts = w->record_from = 0;
        w->deepest = 0;
        w->records = w->home->next_contacts;
        w->record_capacity = w->home->next_capacity;
    }
    tb_team_sync();
    if (list->number_of_contacts > w->record_capacity) {
        if (TB_LEADER) (void)tb_state_reserve_next(w->home, list->number_of_contacts);
        return TB_RESOURCE_EXHAUSTED;
    }
    return tb_block_reserve(w, list->number_of_contacts, list->number_of_rows,
                            list->number_of_values)
               ? TB_OK
               : TB_RESOURCE_EXHAUSTED;
}

/* Appends the segments of unions that another team has found. */
TB_STATIC tb_status take_segments(tb_world *w, const tb_found *found)
{
    const tb_near_list *list = &found->list;
    const int32_t base = w->number_of_segments, count = found->number_of_segments;
    if (!tb_segment_reserve(w, count)) return TB_RESOURCE_EXHAUSTED;
    TB_EACH (i, count) w->segments[base + i] = found->segments[i];
    TB_EACH (i, list->number_of_unions) list->unions[i].chains.segment += base;
    tb_team_sync(); /* all have their places */
    if (TB_LEADER) w->number_of_segments = base + count;
    tb_team_sync();
    return TB_OK;
}

/* ---- rows ---- */

/* The last step's first record of this pair or behind it. */
TB_STATIC int32_t first_record(const tb_state *state, int32_t a, int32_t b)
{
    int32_t first = 0, end = state->number_of_contacts;
    while (first < end) {
        const int32_t middle = first + (end - first) / 2;
        const tb_contact_record *r = &state->contacts[middle];
        if (r->shape_a < a || (r->shape_a == a && r->shape_b < b))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The last step's record of contact `i`, or NULL; points: all of its pair. While the same features touch it has
 * the same place, and a search, in which every look waits for the one before, is not needed. */
TB_STATIC const tb_contact_record *last_record(const tb_state *state, const tb_world_contact *c,
                                               const tb_contact_point *points, int32_t count,
                                               int32_t i)
{
    if (i < state->number_of_contacts) {
        const tb_contact_record *r = &state->contacts[i];
        const int32_t unlike = (r->shape_a ^ c->shape_a) | (r->shape_b ^ c->shape_b);
        if ((unlike == 0) & (r->feature == c->feature)) return r;
    }
    int32_t from = first_record(state, c->shape_a, c->shape_b);
    const tb_contact_record *r = find_record(state, c, &from);
    return r ? r : near_record(state, c, points, count, from);
}

/* Numbers of a contact's rows that a lane keeps in its own memory while it works: those in the arena are
 * scattered. */
enum { OWN_NUMBERS = TB_LANE_NUMBERS };

/* A contact of the list, seen from the lane that takes it. */
typedef struct tb_taken {
    tb_world_contact contact;
    tb_law law;
    directions k;
    tb_contact_timing timing;
    const tb_near *pair;
    const tb_chains *chains;
    tb_real *values, *home; /* rows x width: where they are worked on, and where they belong */
    int32_t count;
} tb_taken;

/* Whether a lane's own memory has room for the numbers of this contact. */
TB_STATIC bool is_small(const tb_near_list *list, int32_t i)
{
    const tb_near *pair = &list->pairs[list->pair_of[i]];
    return pair->rows * list->unions[pair->chains].chains.width <= OWN_NUMBERS;
}

/* W of the contact, in `own` unless that is NULL. Returns the normal velocity before the step. */
TB_STATIC tb_real take_contact(const tb_world *w, const tb_near_list *list, int32_t i, tb_real *own,
                               tb_taken *t, tb_motion *given)
{
    t->pair = &list->pairs[list->pair_of[i]];
    const int32_t within = i - t->pair->contact;
    const tb_contact_point point = t->pair->points[within];
    t->chains = &list->unions[t->pair->chains].chains;
    t->contact = contact_of_pair(w->model, t->pair->a, t->pair->b);
    take_point(&t->contact, &point);
    t->law = tb_contact_law(&t->contact.surface);
    t->k = directions_of(&t->contact, t->law);
    t->timing = tb_contact_timing_of(w->options, w->dt, w->theta);
    t->count = t->k.rows * t->chains->width;
    t->home = w->values + w->number_of_values + t->pair->value + within * t->count;
    t->values = own ? own : t->home;
    for (int32_t n = 0; own && n < OWN_NUMBERS; n++) own[n] = 0;
    for (int32_t n = 0; !own && n < t->count; n++) t->home[n] = 0;
    return fill_contact(w, t->chains, &t->contact, &t->k, t->values, given);
}

/* Block, rows and record of contact `i` with these numbers. */
TB_STATIC void write_contact(const tb_world *w, const tb_taken *t, const tb_motion *given,
                             tb_real before, int32_t i, int32_t number, int32_t row)
{
    tb_block *block = &w->blocks[w->first_contact_block + number];
    const int32_t count = w->options->contact_merge > 0 ? 0 : t->pair->count;
    const contact_past past =
        past_of(last_record(w->state, &t->contact, t->pair->points, count, i));
    *block = TB_VALUE(tb_block){.law = (int32_t)t->law,
                                .row = row,
                                .rows = t->k.rows,
                                .segment = t->chains->segment,
                                .segments = t->chains->number_of_runs,
                                .width = t->chains->width,
                                .value = t->home - w->values};
    finish_contact(w, t->chains, &t->contact, &t->k, &t->timing, given, before, t->values, row,
                   &past, block, &w->records[number]);
    tb_block_whiten(w, t->chains, t->k.rows, t->values);
    if (t->values != t->home) tb_lane_copy(t->home, t->values, (size_t)t->count * sizeof(tb_real));
}

/* A contact that is kept in any case: written in one pass, mostly from registers. own: as of take_contact. */
TB_STATIC void write_in(const tb_world *w, const tb_near_list *list, int32_t i, tb_real *own)
{
    tb_taken t;
    tb_motion given;
    const tb_real before = take_contact(w, list, i, own, &t, &given);
    const int32_t row = t.pair->row + (i - t.pair->contact) * t.k.rows;
    write_contact(w, &t, &given, before, i, i, w->contact_rows + row);
}

/* Two functions, so that the compiler knows which memory the numbers are in. */
TB_CALLED void write_at_home(const tb_world *w, const tb_near_list *list, int32_t i)
{
    write_in(w, list, i, NULL);
}

TB_CALLED void write_at_once(const tb_world *w, const tb_near_list *list, int32_t i)
{
    TB_LANE_ARRAY(own);
    write_in(w, list, i, own);
}

/* Stewart and Trinkle: every contact counts. *contacts, *rows: how many. */
TB_STATIC void write_all(const tb_world *w, const tb_near_list *list, int32_t *contacts,
                         int32_t *rows)
{
    TB_EACH (i, list->number_of_contacts) {
        if (is_small(list, i))
            write_at_once(w, list, i);
        else
            write_at_home(w, list, i);
    }
    *contacts = list->number_of_contacts;
    *rows = list->number_of_rows;
}

/* Moreau: some contacts are skipped, and later ones move up. */
TB_CALLED void write_some(const tb_world *w, const tb_near_list *list, int32_t *contacts,
                          int32_t *rows)
{
    int32_t number = 0, row = 0;
    TB_LANE_ARRAY(own);
    for (int32_t base = 0; base < list->number_of_contacts; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        tb_taken t;
        tb_motion given;
        tb_real before = 0;
        bool counts = false;
        if (i < list->number_of_contacts) {
            before = take_contact(w, list, i, is_small(list, i) ? own : NULL, &t, &given);
            counts = !moreau_skips(w, &t.timing, &t.contact, before);
        }
        int32_t more_contacts, more_rows;
        const int32_t at = number + tb_team_before(counts, &more_contacts);
        const int32_t first = row + tb_team_before(counts ? t.k.rows : 0, &more_rows);
        if (counts) write_contact(w, &t, &given, before, i, at, w->contact_rows + first);
        number += more_contacts;
        row += more_rows;
    }
    *contacts = number;
    *rows = row;
}

TB_STATIC void write_contacts(tb_world *w, const tb_near_list *list)
{
    int32_t contacts, rows;
    if (w->theta == 1)
        write_all(w, list, &contacts, &rows);
    else
        write_some(w, list, &contacts, &rows);
    tb_team_sync();
    tb_real deepest = 0;
    TB_EACH (i, contacts) deepest = tb_max(deepest, TB_R(-w->records[i].gap));
    deepest = TB_R(tb_team_largest((double)deepest));
    tb_team_sync(); /* all are done with the places */
    if (TB_LEADER) {
        w->number_of_contacts = contacts;
        w->number_of_rows += rows;
        w->number_of_values += list->number_of_values;
        w->number_of_blocks += contacts;
        w->deepest = deepest;
    }
    tb_team_sync();
    tb_contacts_end(w);
}

TB_EXTERN tb_status tb_world_detect(tb_world *world, tb_error *error)
{
    tb_world *w = world;
    tb_found found;
    const tb_arena_mark mark = tb_arena_get_mark(w->arena);
    const void *const before[] = {w->segments, w->blocks, w->values, w->c, w->memory};
    const bool known = w->found && w->found->status != TB_RESOURCE_EXHAUSTED;
    if (known) {
        found = *w->found;
        if (TB_LEADER) w->collide_flags = found.flags;
    } else {
        tb_world_search(w, &found);
    }
    tb_status status = found.status;
    if (status == TB_OK && known) status = take_segments(w, &found);
    if (status == TB_OK) status = make_room(w, &found.list);
    if (status == TB_OK) write_contacts(w, &found.list);

    /* if the memory reserved for rows before the search was enough, only scratch lies behind it */
    if (status == TB_OK && w->segments == before[0] && w->blocks == before[1] &&
        w->values == before[2] && w->c == before[3] && w->memory == before[4])
        tb_arena_return_to(w->arena, mark);
    return status == TB_OK || status == TB_DIVERGED ? status : tb_fail(error, status, "");
}

#endif
