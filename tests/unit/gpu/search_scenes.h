/* Scenes whose pairs of shapes are searched through all stages of tb_collide_convex_stage. */
#ifndef SEARCH_SCENES_H
#define SEARCH_SCENES_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test_util.h"
#include "tribo.h"

static inline tb_model *searched(const char *text)
{
    tb_error error;
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "searched.xml", NULL, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* A stone with many faces that two slides press, 1e-6 m deep in an edge of one and a face of the other. */
static inline tb_model *pressed_stone(void)
{
    enum { RINGS = 5, CORNERS = 9 };
    static const char BEGIN[] =
        "<mujoco><option timestep=\"0.002\"/><worldbody><geom type=\"plane\" size=\"1 1 .1\"/>"
        "<body pos=\"0 0 .028529\"><freejoint/><geom type=\"mesh\" mesh=\"stone\" "
        "mass=\"0.2\"/></body>"
        "<body pos=\"-.04233114 0 .036\"><joint name=\"l\" type=\"slide\" axis=\"1 0 0\"/>"
        "<geom type=\"box\" size=\".01 .01 .015\" euler=\"0 0 45\" mass=\"0.1\"/></body>"
        "<body pos=\".039999 0 .036\"><joint name=\"r\" type=\"slide\" axis=\"-1 0 0\"/>"
        "<geom type=\"box\" size=\".01 .02 .015\" mass=\"0.1\"/></body></worldbody>"
        "<actuator><motor joint=\"l\"/><motor joint=\"r\"/></actuator>"
        "<asset><mesh name=\"stone\" vertex=\"";
    static const double PI = 3.14159265358979323846;
    char text[4096];
    int n = snprintf(text, sizeof text, "%s", BEGIN);
    for (int i = 0; i < RINGS * CORNERS; i++) {
        const double up = PI * (i / CORNERS + 0.5) / RINGS,
                     about = 2 * PI * (i % CORNERS) / CORNERS;
        n += snprintf(text + n, sizeof text - (size_t)n, "%.5f %.5f %.5f ",
                      0.03 * sin(up) * cos(about), 0.025 * sin(up) * sin(about), 0.03 * cos(up));
    }
    snprintf(text + n, sizeof text - (size_t)n, "\"/></asset></mujoco>");
    return searched(text);
}

/* An edge of one box is closest to an edge of the other, while a part of its face lies over the other's face: the method for
 * boxes begins with points of that part, and leaves the pair to the general one. */
static inline tb_model *edges_side_by_side(void)
{
    static const char TEXT[] =
        "<mujoco><option timestep=\"0.002\" gravity=\"0 0 0\"/><worldbody>"
        "<geom type=\"plane\" size=\"2 2 .1\" pos=\"0 0 -.2\"/>"
        "<body pos=\"1 0 -.1\"><freejoint/><geom type=\"box\" size=\".1 .1 .1\"/></body>"
        "<body><freejoint/><geom type=\"box\" size=\".1 .1 .1\"/></body>"
        "<body pos=\".2534 .0923 0\" euler=\"0 0 40.606\"><freejoint/>"
        "<geom type=\"box\" size=\".1 .1 .09\"/></body></worldbody></mujoco>";
    return searched(TEXT);
}

#endif
