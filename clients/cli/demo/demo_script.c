/* Offset of the demo's hand over time: lift, shake, rest. See demo.h. */
#include "demo/demo.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

const char *const DEMO_AXES[DEMO_HAND_AXES] = {"x", "y", "lift", "turn", "tilt"};

const double DEMO_CLOSED_S = 0.6, DEMO_LIFTED_S = 1.4, DEMO_SHAKEN_S = 3.9, DEMO_RESTED_S = 4.4,
             DEMO_END_S = 5.4;
const double DEMO_LIFT_M = 0.2;

/* Each axis is shaken for half a second, one after the other: two swings under an envelope that
 * begins and ends with zero position, velocity and acceleration. */
static const double SHAKE_HZ = 3;
static const double SHAKE_AMPLITUDE[DEMO_HAND_AXES] = {0.012, 0.012, 0.012, 0.1, 0.1}; /* m, rad */

/* 0 to 1 with zero velocity and acceleration at both ends */
static double smooth_step(double s)
{
    if (s <= 0) return 0;
    if (s >= 1) return 1;
    return s * s * s * (10 + s * (6 * s - 15));
}

void demo_offset(double time, double offset[DEMO_HAND_AXES])
{
    memset(offset, 0, DEMO_HAND_AXES * sizeof *offset);
    offset[2] = DEMO_LIFT_M * smooth_step((time - DEMO_CLOSED_S) / (DEMO_LIFTED_S - DEMO_CLOSED_S));

    const double each = (DEMO_SHAKEN_S - DEMO_LIFTED_S) / DEMO_HAND_AXES;
    const double into = (time - DEMO_LIFTED_S) / each;
    if (into < 0 || into >= DEMO_HAND_AXES) return;
    const int axis = (int)into;
    const double share = into - axis;
    const double envelope = pow(sin(PI * share), 2);
    offset[axis] += SHAKE_AMPLITUDE[axis] * envelope * sin(2 * PI * SHAKE_HZ * share * each);
}
