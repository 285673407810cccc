/* Records of the last step's contacts: found by the pair of shapes and the feature, or by the place where the feature
 * has changed. */
#ifndef TB_STEP_LAST_CONTACTS_H
#define TB_STEP_LAST_CONTACTS_H

#include <math.h>

#include "step/stages/stages.h"

/* The last step's record of this contact, or NULL. Records are sorted by pair like contacts, so
 * `*from` only moves on. */
TB_STATIC const tb_contact_record *find_record(const tb_state *state, const tb_world_contact *c,
                                               int32_t *from)
{
    int32_t i = *from;
    while (i < state->number_of_contacts &&
           (state->contacts[i].shape_a < c->shape_a ||
            (state->contacts[i].shape_a == c->shape_a && state->contacts[i].shape_b < c->shape_b)))
        i++;
    *from = i;
    for (; i < state->number_of_contacts; i++) {
        const tb_contact_record *r = &state->contacts[i];
        if (r->shape_a != c->shape_a || r->shape_b != c->shape_b) return NULL;
        if (r->feature == c->feature) return r;
    }
    return NULL;
}

/* The record of a feature among those of a pair, which begin at `from`; NULL: there is none. */
TB_STATIC const tb_contact_record *record_of_feature(const tb_state *state, int32_t from,
                                                     const tb_world_contact *pair, uint64_t feature)
{
    int32_t at = from;
    tb_world_contact c = *pair;
    c.feature = feature;
    return find_record(state, &c, &at);
}

/* The square of the distance (m) of a point from where a contact was; infinite where their normals are more than 45
 * degrees apart. */
TB_STATIC double distance2_from(const tb_contact_record *r, tb_vec3 position, tb_vec3 normal)
{
    double distance2 = 0, cosine = 0;
    for (int i = 0; i < 3; i++) {
        const double way = (double)tb_v3_at(position, i) - r->position[i];
        distance2 += way * way;
        cosine += (double)tb_v3_at(normal, i) * r->normal[i];
    }
    return cosine * cosine < 0.5 || cosine < 0 ? DBL_MAX : distance2;
}

/* Whether a pair has a point with this feature. */
TB_STATIC bool has_feature(const tb_contact_point *points, int32_t count, uint64_t feature)
{
    bool any = false;
    for (int32_t k = 0; k < count; k++) any = any || points[k].feature == feature;
    return any;
}

/* For a contact whose feature had no record: the nearest record of its pair whose feature has gone, if of all such
 * contacts this one is the nearest to it. Convex shapes that overlap deeply or lie face on face change their
 * features from step to step, and their forces stay. points: all `count` of the pair, convex; from: the pair's
 * first record. NULL: there is none. */
TB_STATIC const tb_contact_record *near_record(const tb_state *state, const tb_world_contact *c,
                                               const tb_contact_point *points, int32_t count,
                                               int32_t from)
{
    const tb_contact_record *near = NULL;
    double least = DBL_MAX;
    if (count > TB_MANIFOLD_POINTS) return NULL;
    for (int32_t i = from; i < state->number_of_contacts; i++) {
        const tb_contact_record *r = &state->contacts[i];
        if (r->shape_a != c->shape_a || r->shape_b != c->shape_b) break;
        const double distance2 = distance2_from(r, c->position, c->normal);
        if (!(distance2 < least) || has_feature(points, count, r->feature)) continue;
        near = r;
        least = distance2;
    }
    for (int32_t k = 0; near && k < count; k++) {
        const tb_contact_point *p = &points[k];
        if (p->feature == c->feature) continue;
        const tb_vec3 at = tb_v3_lerp(p->point_a, p->point_b, TB_R(0.5));
        if (distance2_from(near, at, p->normal) < least &&
            !record_of_feature(state, from, c, p->feature))
            near = NULL;
    }
    return near;
}

/* A contact in the last step, copied from its record before anything of this step is written: so the loads of
 * a card do not wait for each other. */
typedef struct contact_past {
    double tangent1[3], tangent2[3], impulse[3], slip_speed;
    int32_t rows; /* 0: there is no record */
    int32_t status;
    const tb_contact_record *record;
} contact_past;

TB_STATIC contact_past past_of(const tb_contact_record *record)
{
    contact_past p = {.rows = 0, .status = TB_STATUS_UNKNOWN};
    if (!record) return p;
    for (int i = 0; i < 3; i++) {
        p.tangent1[i] = record->tangent1[i];
        p.tangent2[i] = record->tangent2[i];
        p.impulse[i] = record->impulse[i];
    }
    const double slip1 = record->velocity[1], slip2 = record->velocity[2];
    p.rows = record->kind;
    p.status = record->status;
    p.slip_speed = sqrt(slip1 * slip1 + slip2 * slip2);
    p.record = record;
    return p;
}

#endif
