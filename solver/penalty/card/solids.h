/* Worlds of solids by the volume law on a card: the data of a run, and each part of an evaluation as one
 * function an element, for the backend's kernel.
 *
 * Solids are those of the processor, with their convex pieces; bodies are those of body_law.h, with any
 * number of shapes. A list of near pairs is kept between evaluations as on the processor (forces.c), in the
 * order of the shapes. A pair's fragments are clipped each by a lane of its own, and their sums are taken
 * in the processor's order, so that results do not depend on the order in which lanes come. */
#ifndef TB_SOLIDS_H
#define TB_SOLIDS_H

#include "penalty/card/ball_law.h"
#include "penalty/card/fragments.h"
#include "penalty/card/volume_run.h"

/* A shape that collides. */
typedef struct tb_solids_shape {
    int32_t body;  /* -1: no dof moves it */
    int32_t solid; /* -1: none is needed */
    uint32_t category, mask;
    double radius; /* m, > 0: a ball */
    bool half_space;
    double position[3], rotation[9]; /* in the body's frame */
    double lower[3], upper[3];       /* m, box in the shape's frame */
    tb_pose pose;                    /* of a shape that nothing moves: in the world, with its box */
    double box[6];
    tb_volume_constants constants;
} tb_solids_shape;

/* One model. */
typedef struct tb_solids_scene {
    int32_t number_of_shapes, number_of_bodies, number_of_solids;
    tb_solids_shape *shapes;
    tb_law_body *bodies;
    int32_t *first_shapes; /* bodies + 1: in body_shapes */
    int32_t *body_shapes;
    tb_solid *solids;
    double gravity[3];
    double margin;      /* m: a near pair's boxes are grown by it */
    bool single;        /* every solid is one convex piece */
    bool seams;         /* some solid has inner planes */
    int32_t most_faces; /* of a clip of two pieces, unless rounding makes more of them */
    int32_t pairs;      /* near pairs of the first pose: a guess of the memory that a world needs */
} tb_solids_scene;

/* Shapes whose grown boxes met when the list was made, a < b, and their fragments. */
typedef struct tb_solids_pair {
    int32_t a, b;
    int32_t first, fragments; /* in the world's fragments */
    int32_t parts;            /* contacts, from `first` on */
} tb_solids_pair;

/* Two pieces whose boxes meet. */
typedef struct tb_solids_job {
    int32_t pair, moved, fixed;
} tb_solids_job;

/* A contact of the present evaluation. */
typedef struct tb_solids_contact {
    tb_vec3 centroid, force, torque; /* on A */
    double depth, power;
} tb_solids_contact;

/* Room of one world. */
typedef struct tb_solids_room {
    int32_t pairs, fragments; /* of the world */
    int32_t vertices, seams;  /* of a fragment */
    int32_t faces;            /* of a clip */
} tb_solids_room;

/* Working memory of the world that a team of blocks steps. */
typedef struct tb_solids_memory {
    tb_pose *poses;             /* shapes */
    double *boxes, *near_boxes; /* shapes x 6 */
    tb_pose *body_poses;        /* bodies */
    tb_law_motion *motions;     /* bodies + 1: the last one is at rest */
    int32_t *rows;              /* shapes + 1: pairs by their first shape */
    int32_t *body_rows;         /* bodies + 1: in body_pairs */
    tb_solids_pair *pairs;
    int32_t *body_pairs; /* pairs of each body, ascending */
    tb_solids_job *jobs; /* fragments */
    tb_fragment *fragments;
    tb_vec3 *vertices; /* fragments x vertices */
    tb_seam *seams;    /* fragments x seams */
    tb_solids_contact *contacts;
    int32_t *counts; /* fragments of two evaluations, by turns; whether the list is old */
} tb_solids_memory;

enum { TB_SOLIDS_OLD = 2, TB_SOLIDS_COUNTS = 4 };

/* ---- memory ---- */

/* The next bytes of a block from `base` on, which may be NULL to count. */
TB_FN void *tb_solids_take(char *base, size_t *end, size_t bytes)
{
    char *taken = base ? base + *end : NULL;
    *end += (bytes + 63) / 64 * 64;
    return taken;
}

#define TB_SOLIDS_TAKE(array, type, count)                                                         \
    ((array) = (type *)tb_solids_take(base, &end, (count) * sizeof(type)))

/* Lays a world's arrays out from `base` on; returns their bytes. Where every solid is one piece, fragments are a
 * lane's own (tb_solids_lane_bytes) and a pair has one contact. */
TB_FN size_t tb_solids_place(const tb_solids_scene *s, const tb_solids_room *room, char *base,
                             tb_solids_memory *m)
{
    const size_t shapes = (size_t)s->number_of_shapes, bodies = (size_t)s->number_of_bodies;
    const size_t pairs = (size_t)room->pairs;
    const size_t fragments = s->single ? 0 : (size_t)room->fragments;
    size_t end = 0;
    TB_SOLIDS_TAKE(m->poses, tb_pose, shapes);
    TB_SOLIDS_TAKE(m->boxes, double, 6 * shapes);
    TB_SOLIDS_TAKE(m->near_boxes, double, 6 * shapes);
    TB_SOLIDS_TAKE(m->body_poses, tb_pose, bodies);
    TB_SOLIDS_TAKE(m->motions, tb_law_motion, bodies + 1);
    TB_SOLIDS_TAKE(m->rows, int32_t, shapes + 1);
    TB_SOLIDS_TAKE(m->body_rows, int32_t, bodies + 1);
    TB_SOLIDS_TAKE(m->pairs, tb_solids_pair, pairs);
    TB_SOLIDS_TAKE(m->body_pairs, int32_t, 2 * pairs);
    TB_SOLIDS_TAKE(m->jobs, tb_solids_job, fragments);
    TB_SOLIDS_TAKE(m->fragments, tb_fragment, fragments);
    TB_SOLIDS_TAKE(m->vertices, tb_vec3, fragments * (size_t)room->vertices);
    TB_SOLIDS_TAKE(m->seams, tb_seam, fragments * (size_t)room->seams);
    TB_SOLIDS_TAKE(m->contacts, tb_solids_contact, s->single ? pairs : fragments);
    TB_SOLIDS_TAKE(m->counts, int32_t, (size_t)TB_SOLIDS_COUNTS);
    return end;
}

/* Bytes of a lane's clip, and of the vertices of its fragment behind it. */
TB_FN size_t tb_solids_clip_bytes(const tb_solids_room *room)
{
    return (tb_clip_bytes(room->faces) + 63) / 64 * 64;
}

TB_FN size_t tb_solids_lane_bytes(const tb_solids_scene *s, const tb_solids_room *room)
{
    const size_t vertices = s->single ? (size_t)room->vertices * sizeof(tb_vec3) : 0;
    return tb_solids_clip_bytes(room) + (vertices + 63) / 64 * 64;
}

/* A lane's own memory. */
typedef struct tb_solids_lane {
    tb_clip clip;
    tb_vec3 *vertices; /* of its fragment */
} tb_solids_lane;

TB_FN void tb_solids_place_lane(const tb_solids_room *room, char *base, tb_solids_lane *lane)
{
    tb_clip_place(&lane->clip, base, room->faces);
    lane->vertices = (tb_vec3 *)(void *)(base + tb_solids_clip_bytes(room));
}

/* ---- places ---- */

/* Moves a shape with its body. Returns whether its box is within the grown one of the list of near pairs. */
TB_FN bool tb_solids_move_shape(const tb_solids_shape *shape, const tb_pose *body, tb_pose *pose,
                                double box[6], const double near_box[6])
{
    tb_law_outline outline;
    outline.position = shape->position;
    outline.rotation = shape->rotation;
    outline.radius = shape->radius;
    outline.half_space = shape->half_space;
    outline.lower = shape->lower;
    outline.upper = shape->upper;
    tb_law_place_shape(&outline, body, pose, box);
    bool within = true;
    for (int k = 0; k < 3; k++)
        within = within && box[k] >= near_box[k] && box[3 + k] <= near_box[3 + k];
    return within;
}

TB_FN bool tb_solids_collide(const tb_solids_shape *a, const tb_solids_shape *b)
{
    return a->body != b->body && !(a->half_space && b->half_space) &&
           ((a->category & b->mask) != 0 || (b->category & a->mask) != 0);
}

TB_FN bool tb_solids_boxes_meet(const double a[6], const double b[6])
{
    return tb_corners_meet(a, a + 3, b, b + 3);
}

/* ---- fragments ---- */

/* The number of fixed pieces whose boxes meet a moved one's. */
TB_FN int32_t tb_solids_near_pieces(const tb_solids_meeting *m, int32_t moved)
{
    double lower[3], upper[3];
    const tb_piece *piece = &m->moved->pieces[moved];
    int32_t count = 0;
    tb_law_turn_box(&m->relative, piece->lower, piece->upper, lower, upper);
    if (!tb_corners_meet(lower, upper, m->fixed->lower, m->fixed->upper)) return 0;
    for (int32_t k = 0; k < m->fixed->number_of_pieces; k++) {
        const tb_piece *fixed = &m->fixed->pieces[k];
        count += tb_corners_meet(lower, upper, fixed->lower, fixed->upper);
    }
    return count;
}

/* The fragment of two pieces: its vertices go to `vertices` from number `first` on, and so do those of its
 * faces on inner planes, whose seams begin with number `seam` of `seams`. Returns the vertices that it
 * needs: if they are more than the room has, the fragment is not made, and neither is one whose clip has
 * overflown. A fragment without volume has the volume 0. */
TB_FN int32_t tb_solids_fragment(const tb_solids_meeting *m, const tb_piece *moved,
                                 const tb_piece *fixed, const tb_solids_room *room, tb_clip *c,
                                 tb_fragment *g, tb_vec3 *vertices, int32_t first, tb_seam *seams,
                                 int32_t seam, bool with_seams)
{
    g->volume = 0;
    g->number_of_vertices = g->number_of_seams = 0;
    g->part = 0;
    c->overflow = false;
    if (!tb_clip_pieces(m, moved, fixed, c)) return 0;
    const int32_t loops = with_seams ? c->starts[c->number_of_faces] : 0;
    const int32_t needed = c->number_of_vertices + loops;
    if (needed > room->vertices) return needed;
    if (with_seams && c->number_of_faces > room->seams) return room->vertices + 1;
    if (!tb_measure_fragment(m, c, g)) return needed;
    g->vertex = first;
    g->seam = seam;
    g->number_of_vertices = c->number_of_vertices;
    for (int32_t v = 0; v < c->number_of_vertices; v++)
        vertices[first + v] = tb_pose_point(&m->home, c->vertices[v]);
    int32_t end = first + c->number_of_vertices;
    for (int32_t k = 0; k < c->number_of_faces && with_seams; k++) {
        int32_t solid;
        const int32_t cut = tb_meeting_seam(m, moved, fixed, c->tags[k], &solid);
        if (cut == 0) continue;
        tb_seam *made = &seams[seam + g->number_of_seams++];
        made->solid = solid;
        made->cut = cut;
        made->vertex = end;
        made->number_of_vertices = c->starts[k + 1] - c->starts[k];
        for (int32_t i = c->starts[k]; i < c->starts[k + 1]; i++)
            vertices[end++] = vertices[first + c->loops[i]];
    }
    return needed;
}

/* ---- contacts ---- */

TB_FN tb_law_round tb_solids_round(const tb_solids_shape *shape, const tb_pose *pose)
{
    tb_law_round round;
    round.radius = shape->radius;
    round.position = pose->position;
    round.normal = tb_m33_column(&pose->rotation, 2);
    return round;
}

/* Makes a contact of a part. Returns whether it has a direction. */
TB_FN bool tb_solids_press(const tb_volume_constants *c, const tb_overlap_part *part,
                           const tb_contact_push *given, const tb_law_motion *a,
                           const tb_law_motion *b, tb_solids_contact *contact)
{
    tb_law_pressed x;
    tb_law_press(c, part, given, a, b, &x);
    contact->centroid = part->centroid;
    contact->force = x.push.force;
    contact->torque = x.push.torque;
    contact->depth = part->depth;
    contact->power = x.power;
    return tb_v3_length2(part->area) > 0;
}

/* The contacts of a pair's fragments, which are joined to parts in place. Returns their number; *degenerate is
 * set where one has no direction. */
TB_FN int32_t tb_solids_press_parts(const tb_volume_constants *c, tb_fragment *fragments,
                                    int32_t count, const tb_seam *seams, const tb_vec3 *vertices,
                                    const tb_law_motion *a, const tb_law_motion *b,
                                    tb_solids_contact *contacts, bool *degenerate)
{
    int32_t parts = 0;
    for (int32_t i = 0; i < count; i++) fragments[i].part = c->joined ? 0 : i;
    if (!c->joined && count > 1) {
        tb_join_fragments(fragments, count, seams, vertices);
        tb_settle_roots(fragments, count);
    }
    for (int32_t i = 0; i < count; i++) {
        if (fragments[i].part != i) continue;
        const tb_overlap_part part = tb_part_of(fragments, count, i, vertices, parts);
        if (!tb_solids_press(c, &part, NULL, a, b, &contacts[parts++])) *degenerate = true;
    }
    return parts;
}

/* Adds a contact to the sum of one of its bodies, whose centre of mass is given. */
TB_FN void tb_solids_add(const tb_solids_contact *contact, bool of_a, bool counted, tb_vec3 com,
                         tb_volume_sum *sum)
{
    sum->deepest = contact->depth > sum->deepest ? contact->depth : sum->deepest;
    tb_law_add_wrench(sum->wrench, com, contact->centroid,
                      of_a ? contact->force : tb_v3_negate(contact->force),
                      of_a ? contact->torque : tb_v3_negate(contact->torque));
    if (!counted) return;
    sum->power += contact->power;
    sum->contacts++;
}

#endif
