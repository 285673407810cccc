/* Model images of the GPU backend, on the CPU: an image in the host's memory is a model, so a
 * world on it must step as on the original, and no pointer in it may refer to the original. */
#include "gpu/device/model_image.h"
#include "model/merge.h"
#include "model_util.h"
#include "step/step.h"

/* `origin`: the image of the model that a variant borrows from, or NULL */
static tb_model *image_beside(const tb_model *model, const tb_model *origin, size_t *size)
{
    *size = tb_model_image_size(model, (uintptr_t)origin);
    unsigned char *bytes = aligned_alloc(TB_MODEL_IMAGE_ALIGNMENT, *size);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 0xa5, *size);
    tb_model_image_write(model, (uintptr_t)bytes, (uintptr_t)origin, bytes);
    return (tb_model *)(void *)bytes;
}

static tb_model *image_of(const tb_model *model, size_t *size)
{
    return image_beside(model, NULL, size);
}

/* Whether an address belongs to this process at all, as its table of mappings has it. */
static bool is_mapped(uint64_t address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    unsigned long long from, to;
    bool mapped = false;
    while (!mapped && fscanf(maps, "%llx-%llx%*[^\n]", &from, &to) == 2)
        mapped = address >= from && address < to;
    fclose(maps);
    return mapped;
}

/* Two counts side by side look like an address below it, and there a sanitizer has its shadow. */
static const uint64_t LOWEST_ADDRESS = (uint64_t)1 << 45;

/* Words of a structure's copy that are the original's own and addresses outside the image. */
static int forgotten(const void *original, const void *copy, size_t bytes, const void *image,
                     size_t image_size)
{
    int count = 0;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t was, is;
        memcpy(&was, (const char *)original + i, 8);
        memcpy(&is, (const char *)copy + i, 8);
        const bool inside = is - (uint64_t)(uintptr_t)image < image_size;
        if (is < LOWEST_ADDRESS || inside || is != was || !is_mapped(is)) continue;
        printf("word %zu points out of the image\n", i / 8);
        count++;
    }
    return count;
}

START_TEST(no_address_of_the_original_is_left)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene);
    size_t size;
    tb_model *image = image_of(model, &size);
    ck_assert_int_eq(model->number_of_hulls + model->number_of_meshes, 2);
    ck_assert_int_eq(model->number_of_height_fields, 1);
    ck_assert_int_eq(forgotten(model, image, sizeof *model, image, size), 0);
    for (int32_t i = 0; i < model->number_of_hulls; i++)
        ck_assert_int_eq(
            forgotten(&model->hulls[i], &image->hulls[i], sizeof *model->hulls, image, size), 0);
    for (int32_t i = 0; i < model->number_of_meshes; i++)
        ck_assert_int_eq(
            forgotten(&model->meshes[i], &image->meshes[i], sizeof *model->meshes, image, size), 0);
    ck_assert_int_eq(forgotten(model->height_fields, image->height_fields,
                               sizeof *model->height_fields, image, size),
                     0);

    /* the search finds missed pointers: a structure copied as it is */
    ck_assert_int_gt(forgotten(model, model, sizeof *model, image, size), 20);
    free(image);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(an_image_has_the_same_bytes_wherever_it_is_written)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene);
    const size_t size = tb_model_image_size(model, 0);
    unsigned char *one = malloc(size), *two = malloc(size);
    memset(one, 0x11, size);
    memset(two, 0x22, size);
    tb_model_image_write(model, 0x700000000000, 0, one);
    tb_model_image_write(model, 0x700000000000, 0, two);
    ck_assert_mem_eq(one, two, size); /* so every byte was written */
    free(one);
    free(two);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

/* A world of the model after some steps. */
static uint64_t hash_after(const tb_model *model, int32_t steps)
{
    tb_error error;
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    TEST_OK(tb_step(stepper, state, steps, NULL, &error), &error);
    const uint64_t hash = tb_state_hash(state);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    return hash;
}

START_TEST(a_world_steps_on_an_image_whose_original_is_gone)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene);
    size_t size;
    const uint64_t expected = hash_after(model, 50);
    tb_model *image = image_of(model, &size);
    tb_model_destroy(model); /* under AddressSanitizer a way back there is reported */
    ck_assert_uint_eq(hash_after(image, 50), expected);
    free(image);
    tb_scene_destroy(scene);
}
END_TEST

/* A variant's image has its differences and refers to its origin's for the rest. */
START_TEST(a_variant_borrows_from_its_origin_there_too)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene), *heavier = NULL, *variant = NULL;
    tb_error error;
    const tb_variation more = {
        .friction_scale = 1, .last_body = model->number_of_bodies, .mass_scale = 1.25};
    const tb_variation rough = {.friction_scale = 1.5, .mass_scale = 1};
    TEST_OK(tb_model_vary(model, &more, &heavier, &error), &error);
    TEST_OK(tb_model_vary(heavier, &rough, &variant, &error), &error);
    size_t size, alone, borrowing;
    tb_model *origin = image_of(model, &size);
    tb_model *whole = image_beside(variant, NULL, &alone);
    tb_model *image = image_beside(variant, origin, &borrowing);
    ck_assert_uint_eq(alone, size);
    ck_assert_uint_lt(borrowing, alone / 2);
    ck_assert_ptr_eq(image->meshes, origin->meshes);
    ck_assert_ptr_eq(image->q_reference, origin->q_reference);
    ck_assert_ptr_ne(image->shapes, origin->shapes);
    ck_assert_ptr_ne(image->bodies, origin->bodies);

    const uint64_t expected = hash_after(variant, 50), usual = hash_after(model, 50);
    tb_model_destroy(variant);
    tb_model_destroy(heavier);
    tb_model_destroy(model);
    ck_assert_uint_eq(hash_after(whole, 50), expected);
    ck_assert_uint_eq(hash_after(image, 50), expected);
    ck_assert_uint_eq(hash_after(origin, 50), usual);
    ck_assert_uint_ne(usual, expected);
    free(image), free(whole), free(origin);
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(no_address_of_the_original_is_left, an_image_has_the_same_bytes_wherever_it_is_written,
          a_world_steps_on_an_image_whose_original_is_gone,
          a_variant_borrows_from_its_origin_there_too)
