/* Prescribed motion of kinematic bodies. The processor compiles this once, in double, for the
 * float stepper too; a card's float build turns them in float. */
#include "step/step.h"

TB_EXTERN void tb_kinematic_move(double *numbers, int32_t count, double dt)
{
    for (int32_t i = 0; i < count; i++, numbers += TB_KINEMATIC_NUMBERS) {
        for (int k = 0; k < 3; k++) numbers[k] += dt * numbers[7 + k];
        const tb_vec3 turn = tb_v3_scale(tb_v3_load(numbers + 10), TB_R(dt));
        const tb_quaternion o = tb_q_mul(tb_q_from_rotation_vector(turn), tb_q_load(numbers + 3));
        tb_q_store(numbers + 3, tb_q_normalize(o));
    }
}
