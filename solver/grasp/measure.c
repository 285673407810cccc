/* Measurements of a grasp's world: touching bodies, the object's displacement in the hand, and
 * the contacts' wrenches on the object. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

enum { POINTS = 4 };

/* ---- contacts ---- */

static bool is_hand(const tb_grasp_plan *plan, int32_t body)
{
    return body >= plan->carrier && body < plan->hand_end;
}

static bool is_object(const tb_grasp_plan *plan, int32_t body)
{
    return body >= plan->object && body < plan->object_end;
}

/* The hand's body of a contact between hand and object, -1 if it is another; *flipped: the object
 * is A. */
static int32_t hand_body(const tb_grasp_plan *plan, const tb_contact_info *c, bool *flipped)
{
    const int32_t a = plan->model->shapes[c->shape_a].body,
                  b = plan->model->shapes[c->shape_b].body;
    *flipped = is_object(plan, a);
    if (is_hand(plan, a) && is_object(plan, b)) return a;
    if (is_object(plan, a) && is_hand(plan, b)) return b;
    return -1;
}

void grasp_watch(const tb_grasp_plan *plan, tb_watch watches[GRASP_WATCHES])
{
    const int32_t first = plan->carrier, end = plan->hand_end;
    watches[GRASP_HOLD] = (tb_watch){first, end, plan->object, plan->object_end};
    watches[GRASP_BEFORE] = (tb_watch){first, end, 0, first};
    watches[GRASP_BEHIND] = (tb_watch){first, end, end, plan->model->number_of_bodies};
}

/* Contacts between fingers do not count. */
const tb_touch *grasp_collides(const tb_touch touches[GRASP_WATCHES], double depth)
{
    const tb_touch *before = &touches[GRASP_BEFORE], *behind = &touches[GRASP_BEHIND];
    const tb_touch *deepest = before->gap < behind->gap ? before : behind;
    return deepest->gap < -depth ? deepest : NULL;
}

/* Whether a contact is one of the object with the table. */
static bool on_table(const tb_grasp_plan *plan, const tb_contact_info *c)
{
    const int32_t a = plan->model->shapes[c->shape_a].body,
                  b = plan->model->shapes[c->shape_b].body;
    return (a < plan->carrier && is_object(plan, b)) || (is_object(plan, a) && b < plan->carrier);
}

/* Marks the hand's bodies that touch the object, and measures their grip. */
static void find_holds(grasp_world *world)
{
    const tb_grasp_plan *plan = world->plan;
    const double weight = world->trial.mass * tb_v3_length(tb_v3_load(plan->protocol.gravity));
    bool flipped;
    double grip = 0, table = 0;
    tb_vec3 sum = tb_v3(0, 0, 0);
    const int32_t count = tb_state_number_of_contacts(world->state);
    for (int32_t i = 0; i < count; i++) {
        tb_contact_info c;
        if (tb_state_contact(world->state, i, &c) != TB_OK || !(c.impulse[0] > 0)) continue;
        const double force = c.impulse[0] / plan->dt;
        const int32_t body = hand_body(plan, &c, &flipped);
        if (on_table(plan, &c)) table += force;
        if (body < 0) continue;
        world->holds[body - plan->carrier] = true;
        grip += force;
        sum = tb_v3_add_scaled(sum, tb_v3_load(c.normal), flipped ? -force : force);
    }
    const double unopposed = grip > 0 ? tb_v3_length(sum) / grip : 0;
    world->grip = (grasp_grip){grip, fmax(0, table - weight), asin(fmin(1, unopposed))};
}

/* ---- slip ---- */

tb_vec3 grasp_object_com(const grasp_world *world)
{
    const tb_grasp_plan *plan = world->plan;
    const double *q = tb_state_q(world->shown) + plan->object_coordinate;
    const tb_quaternion turn = tb_q_normalize(tb_q_load(q + 3));
    return tb_v3_add(tb_v3_load(q),
                     tb_q_rotate(turn, tb_v3_load(plan->model->bodies[plan->object].com)));
}

/* The object's centre of mass and three points around it at its radius, world. */
static void object_points(const grasp_world *world, tb_vec3 points[POINTS])
{
    const tb_grasp_plan *plan = world->plan;
    const double *q = tb_state_q(world->shown) + plan->object_coordinate;
    const tb_quaternion turn = tb_q_normalize(tb_q_load(q + 3));
    const double r = plan->object_radius;
    const tb_vec3 arms[POINTS] = {tb_v3(0, 0, 0), tb_v3(r, 0, 0), tb_v3(0, r, 0), tb_v3(0, 0, r)};
    const tb_vec3 com = grasp_object_com(world);
    for (int i = 0; i < POINTS; i++) points[i] = tb_v3_add(com, tb_q_rotate(turn, arms[i]));
}

/* Whether points are tracked in this body's frame: the base, and every body that held the
 * object. */
static bool follows(const grasp_world *world, int32_t i)
{
    return i == 0 || world->holds[i];
}

tb_status grasp_mark(grasp_world *world, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const int32_t bodies = plan->hand_end - plan->carrier;
    tb_vec3 points[POINTS];
    memset(world->holds, 0, (size_t)bodies * sizeof *world->holds);
    find_holds(world);
    const tb_status status = tb_state_body_motions(world->shown, world->motions);
    if (status != TB_OK) return tb_fail(error, status, "a grasp's body motions");
    object_points(world, points);
    for (int32_t i = 0; i < bodies; i++) {
        const grasp_frame frame = grasp_frame_of(&world->motions[plan->carrier + i]);
        for (int k = 0; k < POINTS && follows(world, i); k++)
            tb_v3_store(world->marks + 3 * (POINTS * i + k), grasp_frame_in(&frame, points[k]));
    }
    world->height = points[0].z;
    world->place = tb_v3_load(world->marks);
    return TB_OK;
}

tb_status grasp_slip(grasp_world *world, double *slip, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    tb_vec3 points[POINTS];
    const tb_status status = tb_state_body_motions(world->shown, world->motions);
    if (status != TB_OK) return tb_fail(error, status, "a grasp's body motions");
    object_points(world, points);
    *slip = INFINITY;
    for (int32_t i = 0; i < plan->hand_end - plan->carrier; i++) {
        if (!follows(world, i)) continue;
        const grasp_frame frame = grasp_frame_of(&world->motions[plan->carrier + i]);
        double largest = 0;
        for (int k = 0; k < POINTS; k++) {
            const tb_vec3 was = tb_v3_load(world->marks + 3 * (POINTS * i + k));
            const tb_vec3 is = grasp_frame_in(&frame, points[k]);
            largest = fmax(largest, tb_v3_length(tb_v3_sub(is, was)));
        }
        *slip = fmin(*slip, largest);
    }
    return TB_OK;
}

/* ---- contacts noted ---- */

/* Records a contact's wrench on the object. */
static void note(const grasp_world *world, const tb_contact_info *c, int32_t body, bool flipped,
                 const tb_surface *surface, tb_grasp_contact *out)
{
    const tb_grasp_plan *plan = world->plan;
    const double *q = tb_state_q(world->shown) + plan->object_coordinate;
    const tb_quaternion back = tb_q_conjugate(tb_q_normalize(tb_q_load(q + 3)));
    const double per_second = (flipped ? -1 : 1) / plan->dt;
    const tb_vec3 n = tb_v3_load(c->normal), t1 = tb_v3_load(c->tangent1),
                  t2 = tb_v3_load(c->tangent2), p = tb_v3_load(c->position);
    const double *i = c->impulse;
    tb_vec3 force = tb_v3_scale(n, i[0] * per_second);
    force = tb_v3_add_scaled(force, t1, i[1] * per_second);
    force = tb_v3_add_scaled(force, t2, i[2] * per_second);
    tb_vec3 torque = tb_v3_cross(tb_v3_sub(p, grasp_object_com(world)), force);
    torque = tb_v3_add_scaled(torque, n, i[3] * per_second);
    torque = tb_v3_add_scaled(torque, t1, i[4] * per_second);
    torque = tb_v3_add_scaled(torque, t2, i[5] * per_second);

    const char *name = tb_model_thing_name(plan->model, TB_HANDLE_BODY, body);
    static const char PREFIX[] = "hand/";
    out->body = strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? name + strlen(PREFIX) : name;
    const tb_vec3 local = tb_q_rotate(back, tb_v3_sub(p, tb_v3_load(q)));
    tb_v3_store(out->position, tb_v3_add(local, plan->object_origin));
    tb_v3_store(out->normal, tb_q_rotate(back, flipped ? tb_v3_negate(n) : n));
    tb_v3_store(out->wrench, force);
    tb_v3_store(out->wrench + 3, torque);
    out->force = i[0] / plan->dt;
    const double slide = hypot(i[1], i[2]), mu = surface->friction;
    out->margin = mu * i[0] > 0 ? fmax(0, 1 - slide / (mu * i[0])) : 0;
    grasp_friction(surface, out->friction);
}

tb_status grasp_note_contacts(grasp_world *world, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const tb_model *model = world->variant != NULL ? world->variant : plan->model;
    const int32_t count = tb_state_number_of_contacts(world->state);
    const size_t room = (size_t)count + 1;
    free(world->contacts);
    world->number_of_contacts = 0;
    world->contacts = calloc(room, sizeof *world->contacts);
    if (world->contacts == NULL)
        return tb_fail_memory(error, room * sizeof *world->contacts, "a grasp's contacts");
    for (int32_t i = 0; i < count; i++) {
        tb_contact_info c;
        bool flipped;
        if (tb_state_contact(world->state, i, &c) != TB_OK || !(c.impulse[0] > 0)) continue;
        const int32_t body = hand_body(plan, &c, &flipped);
        if (body < 0) continue;
        const int32_t n = world->number_of_contacts++;
        const tb_surface surface = tb_model_pair_surface(model, c.shape_a, c.shape_b);
        note(world, &c, body, flipped, &surface, &world->contacts[n]);
    }
    return TB_OK;
}
