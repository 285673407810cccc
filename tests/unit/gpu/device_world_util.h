/* Worlds of a card in tests: their memory, their inputs, jaw and mug. */
#ifndef DEVICE_WORLD_UTIL_H
#define DEVICE_WORLD_UTIL_H

#include "device_world.h"
#include "test_util.h"

#include <math.h>
#include <unistd.h>

static tb_model *jaw_and_mug(void)
{
    const char *build = getenv("TRIBO_BUILD");
    char folder[] = "/tmp/test_device_world_XXXXXX", command[1024], path[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "'%s/tests/data/jaw_mug' %s > /dev/null",
             build ? build : "build", folder);
    ck_assert_msg(system(command) == 0, "%s failed", command);
    snprintf(path, sizeof path, "%s/jaw_mug.xml", folder);
    tb_error error;
    tb_model *model = NULL;
    TEST_OK(tb_model_load(path, NULL, &model, &error), &error);
    remove(path);
    remove(folder);
    return model;
}

/* A state with memory for just this many contacts. */
typedef struct device_world {
    tb_state state;
    tb_contact_record *contacts[2];
    unsigned char *memory, *search;
    size_t bytes; /* of each */
} device_world;

static void take_memory(device_world *w)
{
    w->memory = aligned_alloc(64, (w->bytes + 63) / 64 * 64);
    w->search = aligned_alloc(64, (w->bytes + 63) / 64 * 64);
    ck_assert(w->memory && w->search);
}

static device_world make_device_world(const tb_state *like, int32_t contacts, size_t bytes)
{
    device_world w;
    w.state = *like;
    for (int i = 0; i < 2; i++) {
        w.contacts[i] = malloc((size_t)contacts * sizeof *w.contacts[i]);
        ck_assert_ptr_nonnull(w.contacts[i]);
    }
    if (like->number_of_contacts > 0)
        memcpy(w.contacts[0], like->contacts,
               (size_t)like->number_of_contacts * sizeof *w.contacts[0]);
    w.state.contacts = w.contacts[0];
    w.state.next_contacts = w.contacts[1];
    w.state.contact_capacity = w.state.next_capacity = contacts;
    w.state.next_wanted = 0;
    w.bytes = bytes;
    take_memory(&w);
    return w;
}

static void free_device_world(device_world *w)
{
    free(w->contacts[0]);
    free(w->contacts[1]);
    free(w->memory);
    free(w->search);
}

/* Hands close, servos move, the kinematic body follows its course: with rotation only in double,
 * for float turns it in float here and in double in the library. */
static void push(tb_state *state, bool turning)
{
    tb_error error;
    const tb_model_counts counts = tb_model_count(tb_state_model(state));
    for (int32_t i = 0; i < counts.actuators; i++)
        TEST_OK(tb_state_set_control(state, i, i == 1 ? 20 : 0.3, &error), &error);
    const int32_t told = tb_model_find(tb_state_model(state), TB_HANDLE_BODY, "told");
    if (told < 0) return;
    const double position[3] = {0, 0.6, 0.2}, orientation[4] = {1, 0, 0, 0};
    const double linear[3] = {0.1, -0.05, 0.02}, angular[3] = {0.1, 0, turning ? 0.7 : 0};
    const double still[3] = {0, 0, 0};
    TEST_OK(tb_state_set_kinematic(state, told, position, orientation, linear,
                                   turning ? angular : still, &error),
            &error);
}

#endif
