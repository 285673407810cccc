/* The scene of a model for a card: of balls where every body is one, else of solids. */
#ifndef TB_CARD_SCENE_H
#define TB_CARD_SCENE_H

#include "penalty/card/balls.h"
#include "penalty/card/solids.h"
#include "penalty/penalty_internal.h"

typedef struct tb_card_scene {
    bool by_balls;
    tb_balls_scene balls;   /* one of the two */
    tb_solids_scene solids; /* its solids are those of the tb_penalty that it was made from */
    int32_t number_of_bodies;
} tb_card_scene;

/* p: has evaluated the forces at a state of the model. UNSUPPORTED names the part of the model that no kernel
 * has. */
tb_status tb_card_scene_make(const tb_penalty *p, const tb_model *model, tb_card_scene *scene,
                             tb_error *error);
void tb_card_scene_free(tb_card_scene *scene);

#endif
