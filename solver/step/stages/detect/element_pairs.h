/* Pairs of elements with shapes and with each other, whose boxes meet. Part of detect.c. */
#ifndef TB_ELEMENT_PAIRS_H
#define TB_ELEMENT_PAIRS_H

#include <stdlib.h>

#include "step/stages/detect/element_pose.h"

/* A pair of an element and a shape or another element: of shapes, with first balls for elements. */
typedef struct element_pair {
    int32_t a, b;
    int32_t element, other; /* elements; other -1: a shape */
} element_pair;

/* Whether an element sees a shape, and one of them may move. */
TB_STATIC bool element_sees(const tb_world *w, const tb_model_element *e, int32_t s)
{
    const tb_model_filter *filters = w->model->filters, *f = &filters[s];
    const tb_model_filter *own = &filters[e->balls[0]];
    if (!(own->category & f->mask) && !(f->category & own->mask)) return false;
    bool moves = !w->sleep || !w->sleep->any || tb_sleep_moves(w, s);
    for (int32_t k = 0; k < e->corners; k++) {
        if (filters[e->balls[k]].root == f->root) return false;
        moves = moves || tb_sleep_moves(w, e->balls[k]);
    }
    return moves;
}

TB_STATIC int compare_element_pairs(const void *left, const void *right)
{
    const element_pair *p = (const element_pair *)left, *q = (const element_pair *)right;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    if (p->element != q->element) return p->element < q->element ? -1 : 1;
    return (p->other > q->other) - (p->other < q->other);
}

/* Whether two elements may touch: not with a ball in common, nor in one group, nor while all sleep. */
TB_STATIC bool elements_meet(const void *context, int32_t i, int32_t j)
{
    const tb_world *w = (const tb_world *)context;
    const tb_model *m = w->model;
    const tb_model_element *e = &m->elements[i], *f = &m->elements[j];
    const tb_model_filter *p = &m->filters[e->balls[0]], *q = &m->filters[f->balls[0]];
    if (e->group > 0 && e->group == f->group) return false;
    if (!(p->category & q->mask) && !(q->category & p->mask)) return false;
    bool moves = !w->sleep || !w->sleep->any;
    for (int32_t k = 0; k < e->corners; k++) {
        moves = moves || tb_sleep_moves(w, e->balls[k]);
        for (int32_t l = 0; l < f->corners; l++)
            if (e->balls[k] == f->balls[l]) return false;
    }
    for (int32_t l = 0; l < f->corners; l++) moves = moves || tb_sleep_moves(w, f->balls[l]);
    return moves;
}

/* Pairs of elements, in the step's arena. */
typedef struct element_pairs {
    element_pair *pairs;
    int32_t count, capacity;
} element_pairs;

/* Adds the pair of an element with a shape, or with another element and its first ball. */
TB_STATIC bool add_element_pair(const tb_world *w, element_pairs *list, int32_t element,
                                int32_t shape, int32_t other)
{
    const int32_t ball = w->model->elements[element].balls[0];
    if (list->count == list->capacity) {
        const int32_t capacity = 2 * list->capacity + 64;
        element_pair *grown = TB_ARENA_ARRAY(w->arena, element_pair, capacity);
        if (!grown) return false;
        if (list->count > 0) memcpy(grown, list->pairs, (size_t)list->count * sizeof *grown);
        list->pairs = grown;
        list->capacity = capacity;
    }
    list->pairs[list->count++] = TB_VALUE(element_pair){
        ball < shape ? ball : shape, ball < shape ? shape : ball, element, other};
    return true;
}

/* Pairs of elements whose boxes meet. */
TB_STATIC tb_status find_pairs_of_elements(const detection *d, const element_pose *poses,
                                           element_pairs *list)
{
    const tb_world *w = d->world;
    const tb_model *m = w->model;
    tb_pair *met = NULL;
    int32_t count = 0;
    tb_box *boxes = TB_ARENA_ARRAY(w->arena, tb_box, m->number_of_elements);
    if (!boxes) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < m->number_of_elements; i++) boxes[i] = poses[i].box;
    const tb_status status = tb_broad_phase(boxes, m->number_of_elements, elements_meet, w,
                                            w->threads, w->arena, &met, &count);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < count; i++)
        if (!add_element_pair(w, list, met[i].a, m->elements[met[i].b].balls[0], met[i].b))
            return TB_RESOURCE_EXHAUSTED;
    return TB_OK;
}

/* Pairs of elements and shapes, but planes and balls of elements, whose boxes meet. */
TB_STATIC tb_status find_pairs_with_shapes(const detection *d, const element_pose *poses,
                                           element_pairs *list)
{
    const tb_world *w = d->world;
    const tb_model *m = w->model;
    for (int32_t j = 0; j < m->number_of_colliding_shapes; j++) {
        const int32_t s = m->colliding_shapes[j];
        if (m->filters[s].is_corner || m->shapes[s].type == TB_SHAPE_PLANE) continue;
        for (int32_t i = 0; i < m->number_of_elements; i++) {
            if (!tb_box_overlap(&poses[i].box, &d->boxes[j])) continue;
            if (!element_sees(w, &m->elements[i], s)) continue;
            if (!add_element_pair(w, list, i, s, -1)) return TB_RESOURCE_EXHAUSTED;
        }
    }
    return TB_OK;
}

/* Whether there is anything that an element could touch. */
TB_STATIC bool elements_matter(const tb_model *m)
{
    if (m->has_element_pairs) return true;
    for (int32_t j = 0; j < m->number_of_colliding_shapes; j++) {
        const int32_t s = m->colliding_shapes[j];
        if (!m->filters[s].is_corner && m->shapes[s].type != TB_SHAPE_PLANE) return true;
    }
    return false;
}

/* Poses the elements and finds their pairs, sorted by shapes. */
TB_STATIC tb_status pose_elements(const detection *d, element_pose **poses, element_pairs *list)
{
    const tb_model *m = d->world->model;
    if (m->number_of_elements == 0 || !elements_matter(m)) return TB_OK;
    *poses = TB_ARENA_ARRAY(d->world->arena, element_pose, m->number_of_elements);
    if (!*poses) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < m->number_of_elements; i++)
        pose_element(d->world, &m->elements[i], &(*poses)[i]);
    tb_status status = find_pairs_with_shapes(d, *poses, list);
    if (status == TB_OK && m->has_element_pairs) status = find_pairs_of_elements(d, *poses, list);
    if (list->count > 0)
        qsort(list->pairs, (size_t)list->count, sizeof *list->pairs, compare_element_pairs);
    return status;
}

#endif
