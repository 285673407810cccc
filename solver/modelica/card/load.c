/* Kernels of a function: listed, compiled by NVRTC and loaded on the card, once in a program. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "modelica/cache.h"
#include "modelica/card/call.h"

static void free_loaded(mo_loaded *loaded, const mo_driver *driver)
{
    if (loaded == NULL) return;
    if (loaded->module != NULL) driver->cuModuleUnload(loaded->module);
    for (int32_t f = 0; f < loaded->count; f++) {
        if (loaded->kernels != NULL) free(loaded->kernels[f]);
        if (loaded->handle != NULL) free(loaded->handle[f]);
        if (loaded->tiled != NULL) free(loaded->tiled[f]);
    }
    free(loaded->kernels);
    free(loaded->handle);
    free(loaded->tiled);
    free(loaded);
}

/* lists the kernels of every function that a call reaches; their number, or -1 without memory */
static int32_t list_kernels(const mo_program *program, const mo_function *f, mo_loaded *loaded)
{
    int32_t kernels = 0;
    const size_t count = (size_t)program->count;
    bool *reached = calloc(count, sizeof *reached);
    loaded->kernels = calloc(count, sizeof *loaded->kernels);
    loaded->handle = calloc(count, sizeof *loaded->handle);
    loaded->tiled = calloc(count, sizeof *loaded->tiled);
    loaded->count = program->count;
    bool good = reached != NULL && loaded->kernels != NULL && loaded->handle != NULL &&
                loaded->tiled != NULL;
    if (good) tb_mo_reach(f, reached);
    for (int32_t k = 0; k < program->count && good; k++) {
        const mo_function *g = program->functions[k];
        if (!reached[k] || g->kernels == 0) continue;
        const size_t own = (size_t)tb_mo_kernel_count(g);
        loaded->kernels[k] = calloc(own, sizeof **loaded->kernels);
        loaded->handle[k] = calloc(own, sizeof **loaded->handle);
        loaded->tiled[k] = calloc(own, sizeof **loaded->tiled);
        good = loaded->kernels[k] != NULL && loaded->handle[k] != NULL && loaded->tiled[k] != NULL;
        if (good) tb_mo_list_kernels(g, loaded->kernels[k]);
        kernels += g->kernels;
    }
    free(reached);
    return good ? kernels : -1;
}

static tb_status find_kernel(mo_driver *driver, mo_loaded *loaded, const mo_function *f, int32_t k,
                             tb_error *error)
{
    const mo_kernel *kernel = &loaded->kernels[f->index][k];
    const mo_fold *fold = kernel->loop->loop->fold;
    char name[32];
    if (!kernel->fits) return TB_OK;
    const char kind = kernel->sweep != NULL ? 'w' : fold != NULL && !fold->parallel ? 'r' : 'k';
    snprintf(name, sizeof name, "%c%d", kind, kernel->number);
    if (driver->cuModuleGetFunction(&loaded->handle[f->index][k], loaded->module, name) != 0)
        return tb_fail(error, TB_INTERNAL, "generated code lacks %s", name);
    for (int32_t q = 0; fold != NULL && fold->parallel && q < fold->count; q++) {
        const int32_t join = tb_mo_join_number(fold->statement[q]->value);
        snprintf(name, sizeof name, "g%d", join);
        if (loaded->join[join] == NULL &&
            driver->cuModuleGetFunction(&loaded->join[join], loaded->module, name) != 0)
            return tb_fail(error, TB_INTERNAL, "generated code lacks %s", name);
    }
    if (kernel->product == NULL) return TB_OK;
    mo_tiled *tiled = &loaded->tiled[f->index][k];
    /* a card has either those by tensor cores or the others */
    bool any = false;
    for (int tensor = f->reorder ? 1 : 0; tensor >= 0 && !any; tensor--)
        for (int q = 0; q < MO_TILES; q++) {
            if (tb_mo_tiles[q].tensor != (tensor > 0)) continue;
            snprintf(name, sizeof name, "%s%d", tb_mo_tiles[q].prefix, kernel->number);
            if (driver->cuModuleGetFunction(&tiled->handle[q], loaded->module, name) == 0)
                any = true;
            else
                tiled->handle[q] = NULL;
        }
    if (!any) return tb_fail(error, TB_INTERNAL, "generated code lacks a product");
    return TB_OK;
}

/* Machine code from the cache; false: it is not there, or the card does not load it. */
static bool load_cached(mo_driver *driver, mo_loaded *loaded, const char *path)
{
    tb_bytes code = {0};
    const bool good = tb_mo_cache_owns(path) && tb_file_read(path, 0, &code, NULL) == TB_OK &&
                      driver->cuModuleLoadData(&loaded->module, code.base) == 0;
    if (!good) loaded->module = NULL;
    /* the time of use orders the cache */
    if (good) utimensat(AT_FDCWD, path, NULL, 0);
    tb_bytes_free(&code);
    return good;
}

/* Loads the module of a text, compiled now or taken from the cache. */
static tb_status load_code(mo_driver *driver, mo_loaded *loaded, const char *text,
                           const tb_function_options *options, tb_error *error)
{
    char folder[MO_PATH_BYTES], path[MO_PATH_BYTES + 80], key[65], *code = NULL;
    size_t size = 0;
    const bool cached = tb_mo_cache_folder(options, folder, sizeof folder);
    if (cached) {
        tb_mo_nvrtc_key(driver, text, driver->architecture, key);
        snprintf(path, sizeof path, "%s/%s.cubin", folder, key);
        if (load_cached(driver, loaded, path)) return TB_OK;
    }
    tb_status status = tb_mo_nvrtc_compile(driver, text, driver->architecture, &code, &size, error);
    if (status == TB_OK && driver->cuModuleLoadData(&loaded->module, code) != 0)
        status = tb_fail(error, TB_INTERNAL, "the card does not load generated code");
    /* a cache that cannot be written costs time alone */
    if (status == TB_OK && cached && tb_file_write(path, code, size, NULL) == TB_OK) {
        chmod(path, S_IRUSR | S_IWUSR);
        tb_mo_cache_shrink(folder, options);
    }
    free(code);
    return status;
}

static tb_status load_function(mo_driver *driver, const mo_program *program, const mo_function *f,
                               const tb_function_options *options, mo_loaded *loaded,
                               tb_error *error)
{
    mo_text text = {0};
    loaded->function = f->index;
    const int32_t kernels = list_kernels(program, f, loaded);
    if (kernels < 0) return tb_fail_memory(error, 0, "kernels");
    if (kernels == 0) return TB_OK;
    tb_status status = tb_mo_emit_cuda(program, loaded->kernels, &text, error);
    if (status == TB_OK)
        status = load_code(driver, loaded, (const char *)text.bytes.base, options, error);
    if (status == TB_OK && driver->cuModuleGetFunction(&loaded->finite, loaded->module, "kf") != 0)
        status = tb_fail(error, TB_INTERNAL, "generated code lacks kf");
    for (int32_t g = 0; g < program->count; g++) {
        const mo_function *own = program->functions[g];
        for (int32_t k = 0;
             loaded->kernels[g] != NULL && k < tb_mo_kernel_count(own) && status == TB_OK; k++)
            status = find_kernel(driver, loaded, own, k, error);
    }
    tb_bytes_free(&text.bytes);
    return status;
}

tb_status tb_mo_card_load(const mo_program *program, const mo_function *function,
                          const tb_function_options *options, struct mo_card_program **loaded,
                          struct mo_card **card, double *compile_seconds, tb_error *error)
{
    mo_driver *driver = NULL;
    const double begin = tb_mo_seconds();
    tb_status status = tb_mo_driver(&driver, error);
    if (status != TB_OK) return status;
    if (*loaded == NULL) *loaded = calloc(1, sizeof **loaded);
    if (*loaded == NULL) return tb_fail_memory(error, 0, "kernels");
    (*loaded)->driver = driver;
    mo_loaded *found = (*loaded)->functions;
    while (found != NULL && found->function != function->index) found = found->next;
    if (found == NULL) {
        found = calloc(1, sizeof *found);
        if (found == NULL) return tb_fail_memory(error, 0, "kernels");
        status = load_function(driver, program, function, options, found, error);
        if (status != TB_OK) {
            free_loaded(found, driver);
            return status;
        }
        found->next = (*loaded)->functions;
        (*loaded)->functions = found;
        *compile_seconds = tb_mo_seconds() - begin;
    }
    *card = calloc(1, sizeof **card);
    if (*card == NULL) return tb_fail_memory(error, 0, "a call on the card");
    **card = (struct mo_card){.driver = driver, .program = program, .functions = found};
    return TB_OK;
}

void tb_mo_card_unload(struct mo_card_program *loaded)
{
    if (loaded == NULL) return;
    for (mo_loaded *f = loaded->functions, *next; f != NULL; f = next) {
        next = f->next;
        free_loaded(f, loaded->driver);
    }
    free(loaded);
}
