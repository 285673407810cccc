/* Evaluations of the volume law that a state keeps for viewers: tb_state_evaluations. */
#ifndef TB_EVALUATIONS_H
#define TB_EVALUATIONS_H

#include "tribo_model.h"

/* Arrays that grow up to a bound, which holds for all of them together. A step starts with empty
 * ones; an evaluation that does not fit is dropped whole, with all later ones of its step. */
typedef struct tb_kept_evaluations {
    size_t bytes;   /* bound */
    int32_t bodies; /* poses of an evaluation */
    int32_t shapes; /* boxes of an evaluation */
    int32_t count;  /* evaluations */
    int32_t left_out;
    int32_t contacts, triangles;
    bool fits; /* the evaluation that is being made */
    tb_evaluation *evaluations;
    tb_evaluation_contact *contact;
    tb_evaluation_triangle *triangle;
    double *poses, *boxes;
    int32_t *box_shapes;
    int32_t evaluation_capacity, contact_capacity, triangle_capacity, pose_capacity, box_capacity;
} tb_kept_evaluations;

/* Starts a step with this many bodies and these shapes with boxes. */
void tb_kept_begin_step(tb_kept_evaluations *, int32_t bodies, const int32_t *shapes,
                        int32_t number_of_shapes);
void tb_kept_clear(tb_kept_evaluations *); /* NULL is fine */
/* Starts the evaluation at a time (s) after the step's start. */
void tb_kept_begin(tb_kept_evaluations *, double time);
/* Places of the evaluation's poses (bodies x 7) and boxes (shapes x 6); of one more contact or
 * triangle, zeroed. NULL: it does not fit. */
double *tb_kept_poses(tb_kept_evaluations *);
double *tb_kept_boxes(tb_kept_evaluations *);
tb_evaluation_contact *tb_kept_contact(tb_kept_evaluations *);
tb_evaluation_triangle *tb_kept_triangle(tb_kept_evaluations *);
/* Ends the evaluation: keeps it, or counts it as left out. */
void tb_kept_end(tb_kept_evaluations *);
void tb_kept_destroy(tb_kept_evaluations *); /* NULL is fine */

#endif
