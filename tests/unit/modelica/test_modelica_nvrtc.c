/* NVIDIA's NVRTC takes the CUDA text of every model: machine code of compute capability 9.0, without a card.
 * The library is the one of `deploy/deps.sh gpu`, or the system's; without it the test does nothing. */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common_modelica.h"
#include "modelica/card/kernels.h"
#include "modelica/function.h"
#include "test_util.h"

/* Loads the library of the build folder, so that a search by name finds it. */
static void load_own(void)
{
    char self[512] = "", pattern[1200];
    glob_t found = {0};
    const char *build = getenv("TRIBO_BUILD");
    if (build == NULL && readlink("/proc/self/exe", self, sizeof self - 1) > 0) {
        char *tests = strstr(self, "/tests/unit/");
        if (tests != NULL) *tests = '\0';
        build = self;
    }
    static const char *const NAMES[] = {"libnvrtc-builtins.so.13.*", "libnvrtc.so.13"};
    for (int k = 0; k < 2; k++) {
        snprintf(pattern, sizeof pattern, "%s/cuda/lib/python3*/site-packages/nvidia/cu13/lib/%s",
                 build, NAMES[k]);
        if (glob(pattern, k == 0 ? 0 : GLOB_APPEND, NULL, &found) != 0) continue;
    }
    for (size_t k = 0; k < found.gl_pathc; k++) dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
}

/* Machine code for an architecture, checked to be an ELF file. */
static void compile_for(const mo_driver *driver, const mo_function *f, const mo_text *text,
                        const char *architecture, bool by_tensor_cores)
{
    tb_error error = {0};
    char *code = NULL;
    size_t size = 0;
    const tb_status status = tb_mo_nvrtc_compile(driver, (const char *)text->bytes.base,
                                                 architecture, &code, &size, &error);
    ck_assert_msg(status == TB_OK, "%s: %s", f->name, error.message);
    ck_assert_mem_eq(code, "\177ELF", 4);
    /* sections of the kernels of tiles (product.c): m by tensor cores, t in order */
    if (f->reorder) {
        ck_assert_int_eq(memmem(code, size, ".text.m", 7) != NULL, by_tensor_cores);
        ck_assert_int_eq(memmem(code, size, ".text.t", 7) != NULL, !by_tensor_cores);
    }
    free(code);
}

static void compile_function(const mo_driver *driver, const mo_program *program,
                             const mo_function *f)
{
    bool reached[256] = {false};
    mo_kernel *kernels[256] = {NULL};
    mo_text text = {0};
    tb_error error = {0};
    ck_assert_int_le(program->count, 256);
    tb_mo_reach(f, reached);
    for (int32_t k = 0; k < program->count; k++) {
        const mo_function *g = program->functions[k];
        if (!reached[k] || g->kernels == 0) continue;
        kernels[k] = calloc((size_t)tb_mo_kernel_count(g), sizeof **kernels);
        tb_mo_list_kernels(g, kernels[k]);
    }
    TEST_OK(tb_mo_emit_cuda(program, kernels, &text, &error), &error);
    compile_for(driver, f, &text, "sm_90", true);
    if (f->reorder) compile_for(driver, f, &text, "sm_80", false);
    for (int32_t k = 0; k < program->count; k++) free(kernels[k]);
    tb_bytes_free(&text.bytes);
}

START_TEST(nvrtc_compiles_the_kernels_of_every_model)
{
    static const char *const MODELS[] = {"matmul", "shallow_water", "stam", "cold_plates",
                                         "airflow"};
    mo_driver driver = {0};
    tb_error error = {0};
    load_own();
    if (tb_mo_nvrtc_open(&driver, &error) != TB_OK) return;
    for (size_t k = 0; k < sizeof MODELS / sizeof MODELS[0]; k++) {
        char path[256], *source = calloc(1, 1 << 16);
        snprintf(path, sizeof path, "tests/data/modelica/%s.mo", MODELS[k]);
        FILE *file = fopen(path, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_gt(fread(source, 1, (1 << 16) - 1, file), 0);
        fclose(file);
        tb_function_program *program = compile_text(source, &error);
        ck_assert_msg(program != NULL, "%s", error.message);
        for (int32_t f = 0; f < program->program.count; f++)
            if (program->program.functions[f]->on_card)
                compile_function(&driver, &program->program, program->program.functions[f]);
        tb_function_destroy(program);
        free(source);
    }
}
END_TEST

TEST_MAIN(nvrtc_compiles_the_kernels_of_every_model)
