/* Paths of spatial tendons in the scene builder: checks a path and copies it into the scene's
 * memory. */
#include "model/model_internal.h"

#include <string.h>

/* Clears fields that the kind does not use, so that equal models have equal bytes. */
static void check_point(tb_check *check, const tb_scene *scene, tb_tendon_point *p)
{
    const bool round = p->kind == TB_TENDON_SPHERE || p->kind == TB_TENDON_CYLINDER;
    int32_t body = -1;
    if (p->kind == TB_TENDON_PULLEY) {
        const double divisor = p->divisor;
        *p = tb_tendon_point_defaults();
        p->kind = TB_TENDON_PULLEY;
        p->divisor = divisor;
        tb_check_positive(check, "divisor", &p->divisor, 1);
        return;
    }
    if ((unsigned)p->kind > TB_TENDON_PULLEY)
        tb_check_fail(check, "points", "have kind %d, which is none", (int)p->kind);
    p->divisor = 0;
    tb_check_handle(check, scene, "points", p->body, TB_HANDLE_BODY, true, &body);
    tb_check_numbers(check, "position", p->position, 3);
    if (round) {
        tb_check_positive(check, "radius", &p->radius, 1);
        tb_check_quaternion(check, "orientation", p->orientation);
    } else {
        p->radius = 0;
        memcpy(p->orientation, (double[4]){1}, sizeof p->orientation);
    }
    p->has_side = round && p->has_side;
    if (!p->has_side) {
        memset(&p->side_body, 0, sizeof p->side_body);
        memset(p->side, 0, sizeof p->side);
        return;
    }
    tb_check_handle(check, scene, "side_body", p->side_body, TB_HANDLE_BODY, true, &body);
    tb_check_numbers(check, "side", p->side, 3);
}

static bool is_site(const tb_tendon_point *points, int32_t count, int32_t i)
{
    return i >= 0 && i < count && points[i].kind == TB_TENDON_SITE;
}

static bool is_joined(const tb_tendon_point *points, int32_t count, int32_t i)
{
    return i >= 0 && i < count && points[i].kind != TB_TENDON_PULLEY;
}

/* Every branch has at least two sites, one at each end, and a site on either side of a sphere or
 * cylinder. */
static void check_order(tb_check *check, const tb_tendon_point *points, int32_t count)
{
    for (int32_t i = 0; i < count && check->status == TB_OK; i++) {
        const tb_tendon_point_kind kind = points[i].kind;
        const bool before = is_joined(points, count, i - 1),
                   after = is_joined(points, count, i + 1);
        if (kind == TB_TENDON_PULLEY && (!after || (i > 0 && !before)))
            tb_check_fail(check, "points", "[%d] is a pulley without a branch behind it", (int)i);
        else if (kind == TB_TENDON_SITE && !before && !after)
            tb_check_fail(check, "points", "[%d] is a site without a neighbour", (int)i);
        else if (kind != TB_TENDON_PULLEY && kind != TB_TENDON_SITE &&
                 (!is_site(points, count, i - 1) || !is_site(points, count, i + 1)))
            tb_check_fail(check, "points", "[%d] goes around a shape that is not between two sites",
                          (int)i);
    }
}

const tb_tendon_point *tb_scene_keep_path(tb_scene *scene, tb_check *check,
                                          const tb_tendon_def *def)
{
    const int32_t count = def->number_of_points;
    if (def->number_of_joints != 0)
        tb_check_fail(check, "points", "stand beside joints: a tendon has one or the other");
    else if (count < 2 || count > TB_SCENE_LIMIT)
        tb_check_fail(check, "points", "must be at least two, but number %d", (int)count);
    else if (def->points == NULL)
        tb_check_fail(check, "points", "are missing");
    if (check->status != TB_OK) return NULL;
    tb_tendon_point *points = TB_ARENA_ARRAY(&scene->data, tb_tendon_point, count);
    if (points == NULL) {
        check->status = tb_fail_memory(check->error, (size_t)count * sizeof *points, "a tendon");
        return NULL;
    }
    memcpy(points, def->points, (size_t)count * sizeof *points);
    for (int32_t i = 0; i < count && check->status == TB_OK; i++)
        check_point(check, scene, &points[i]);
    check_order(check, points, count);
    for (int32_t i = 0; i < count && def->armature > 0; i++)
        if (points[i].radius > 0)
            tb_check_fail(check, "armature", "is only for tendons that go around nothing");
    return points;
}
