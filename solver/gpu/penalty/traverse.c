/* Triangles that go down BSP trees on a GPU: the host's side. A launch takes the parts that the launch before
 * added, until there are none; a list that is too short is made again, larger. */
#include "gpu/penalty/traverse.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/device.h"

enum { BEFORE, AFTER, FEWEST_PARTS = 4096, LAUNCH_PARTS = 1024 /* for each processor */ };
/* Bytes of a thread's stack for TB_GPU_TRAVERSE_DEPTH calls. */
static const size_t RECURSIVE_STACK = 8192;

typedef struct traverse_job {
    tb_gpu_device device;
    tb_gpu_buffer trees, list, own;
    tb_gpu_traverse g; /* pointers of the card */
    int32_t most;      /* parts of a launch */
} traverse_job;

static tb_status bring(traverse_job *j, const void *to, const void *from, size_t bytes,
                       tb_error *error)
{
    if (bytes == 0) return TB_OK;
    return tb_gpu_check(&j->device,
                        cudaMemcpyAsync((void *)(uintptr_t)to, from, bytes, cudaMemcpyHostToDevice,
                                        j->device.stream),
                        "bringing trees", error);
}

static tb_status fetch(traverse_job *j, void *to, const void *from, size_t bytes, tb_error *error)
{
    if (bytes == 0) return TB_OK;
    tb_status status = tb_gpu_check(
        &j->device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, j->device.stream),
        "fetching triangles", error);
    return status == TB_OK ? tb_gpu_wait(&j->device, "going down trees", error) : status;
}

static tb_status bring_trees(traverse_job *j, const tb_traversal *t, tb_error *error)
{
    const size_t nodes = (size_t)t->number_of_nodes * sizeof *t->nodes;
    const size_t sources = (size_t)t->number_of_sources * sizeof *t->sources;
    const size_t begin = (nodes + 255) / 256 * 256;
    tb_status status = tb_gpu_reserve(&j->device, &j->trees, begin + sources + 1, error);
    if (status != TB_OK) return status;
    char *at = j->trees.memory;
    j->g.t = *t;
    j->g.t.nodes = (const tb_traversal_node *)(void *)at;
    j->g.t.sources = (const tb_traversal_source *)(void *)(at + begin);
    status = bring(j, j->g.t.nodes, t->nodes, nodes, error);
    return status == TB_OK ? bring(j, j->g.t.sources, t->sources, sources, error) : status;
}

static tb_status bring_parts(traverse_job *j, const tb_traversal *t, int32_t capacity,
                             tb_error *error)
{
    const int32_t count = t->number_of_parts;
    const size_t bytes = (size_t)capacity * sizeof *t->parts;
    const int32_t lists = capacity < j->most ? capacity : j->most;
    tb_status status = tb_gpu_reserve(&j->device, &j->list, bytes + 256, error);
    if (status == TB_OK && t->way == TB_TRAVERSE_OWN)
        status = tb_gpu_reserve(&j->device, &j->own,
                                (size_t)lists * TB_GPU_OWN_PARTS * sizeof *t->parts, error);
    if (status != TB_OK) return status;
    j->g.capacity = capacity;
    j->g.count = (int32_t *)j->list.memory;
    j->g.parts = (tb_traversal_part *)(void *)((char *)j->list.memory + 256);
    j->g.own = j->own.memory;
    status = bring(j, j->g.count, &count, sizeof count, error);
    if (status == TB_OK)
        status = bring(j, j->g.parts, t->parts, (size_t)count * sizeof *t->parts, error);
    return status == TB_OK ? tb_gpu_wait(&j->device, "bringing triangles", error) : status;
}

/* All launches; *wanted is the length of the list at the end, above the capacity if it was too short; *done
 * parts have been gone through. */
static tb_status launch_all(traverse_job *j, tb_traversal *t, int32_t *wanted, int32_t *done,
                            tb_error *error)
{
    tb_status status = TB_OK;
    *wanted = t->number_of_parts;
    *done = 0;
    t->launches = 0;
    memset(t->batches, 0, sizeof t->batches);
    while (status == TB_OK && *done < *wanted && *wanted <= j->g.capacity) {
        if (t->way == TB_TRAVERSE_HYBRID && *wanted - *done <= t->limit) return TB_OK;
        j->g.from = *done;
        j->g.to = *wanted - *done > j->most ? *done + j->most : *wanted;
        if (t->launches < TB_TRAVERSAL_BATCHES) t->batches[t->launches] = j->g.to - j->g.from;
        t->launches++;
        status = tb_gpu_check(&j->device, tb_gpu_start_traverse(&j->g, j->device.stream),
                              "going down trees", error);
        *done = j->g.to;
        if (status == TB_OK) status = fetch(j, wanted, j->g.count, sizeof *wanted, error);
    }
    return status;
}

/* The kept ones of `count` parts, of which those from `done` on have still to go down. */
static tb_status collect(const tb_traversal *t, const tb_traversal_part *parts, int32_t count,
                         int32_t done, tb_traversal *result, tb_error *error)
{
    int32_t capacity = 0, waiting_room = 0, waiting = 0, kept = 0;
    tb_traversal_part *stack = NULL, *list = NULL;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        tb_traversal_part x = parts[i], more[2];
        for (;;) {
            while (i >= done && x.node >= 0) {
                const int32_t pieces = tb_traversal_step(t, &x, more);
                for (int32_t k = 0; k < pieces; k++) {
                    tb_traversal_part *grown =
                        tb_grow(stack, waiting + 1, &waiting_room, sizeof *grown);
                    if (!grown) {
                        status = tb_fail_memory(error, 0, "parts of triangles");
                        goto done;
                    }
                    stack = grown;
                    stack[waiting++] = more[k];
                }
            }
            if (x.node == TB_TRAVERSAL_KEPT) {
                tb_traversal_part *grown = tb_grow(list, kept + 1, &capacity, sizeof *grown);
                if (!grown) {
                    status = tb_fail_memory(error, 0, "parts of triangles");
                    goto done;
                }
                list = grown;
                list[kept++] = x;
            }
            if (waiting == 0) break;
            x = stack[--waiting];
        }
    }
done:
    free(stack);
    if (status != TB_OK) {
        free(list);
        return status;
    }
    result->kept = list;
    result->number_of_kept = kept;
    return TB_OK;
}

static tb_status traverse(traverse_job *j, tb_traversal *t, tb_error *error)
{
    int32_t wanted = t->number_of_parts, done = 0;
    int32_t capacity = wanted < FEWEST_PARTS / 4 ? FEWEST_PARTS : 4 * wanted;
    tb_status status = bring_trees(j, t, error);
    for (bool first = true; status == TB_OK && (first || wanted > j->g.capacity); first = false) {
        if (!first) capacity = wanted + wanted / 2;
        status = bring_parts(j, t, capacity, error);
        if (status == TB_OK) status = tb_gpu_mark(&j->device, BEFORE, error);
        if (status == TB_OK) status = launch_all(j, t, &wanted, &done, error);
    }
    t->seconds = 0;
    if (status == TB_OK) status = tb_gpu_mark(&j->device, AFTER, error);
    if (status == TB_OK) status = tb_gpu_wait(&j->device, "going down trees", error);
    if (status == TB_OK) status = tb_gpu_elapsed(&j->device, BEFORE, AFTER, &t->seconds, error);
    if (status != TB_OK) return status;
    const size_t bytes = (size_t)wanted * sizeof *t->parts;
    tb_traversal_part *parts = malloc(bytes + 1);
    if (!parts) return tb_fail_memory(error, bytes, "parts of triangles");
    status = fetch(j, parts, j->g.parts, bytes, error);
    if (status == TB_OK) status = collect(t, parts, wanted, done, t, error);
    free(parts);
    return status;
}

tb_status tb_gpu_traverse_trees(int32_t device, tb_traversal *traversal, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = tb_gpu_count(reason);
    if (device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend 'gpu'",
                             (int)device, (int)devices);
    traversal->kept = NULL;
    traversal->number_of_kept = traversal->launches = 0;
    if (traversal->number_of_parts == 0) return TB_OK;
    traverse_job j = {.g = {.capacity = 0}};
    int processors = 0;
    size_t stack = 0;
    const bool calls = traversal->way == TB_TRAVERSE_RECURSIVE;
    tb_status status = tb_gpu_device_open(device, &j.device, error);
    if (status != TB_OK) return status;
    status = tb_gpu_check(
        &j.device, cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "asking for its processors", error);
    j.most = LAUNCH_PARTS * processors;
    if (status == TB_OK && calls)
        status = tb_gpu_check(&j.device, cudaDeviceGetLimit(&stack, cudaLimitStackSize),
                              "asking for its stack", error);
    if (status == TB_OK && calls && stack < RECURSIVE_STACK)
        status = tb_gpu_check(&j.device, cudaDeviceSetLimit(cudaLimitStackSize, RECURSIVE_STACK),
                              "taking a larger stack", error);
    if (status == TB_OK) status = traverse(&j, traversal, error);
    if (calls && stack > 0 && stack < RECURSIVE_STACK && !j.device.lost)
        (void)cudaDeviceSetLimit(cudaLimitStackSize, stack);
    tb_gpu_release(&j.device, &j.trees);
    tb_gpu_release(&j.device, &j.list);
    tb_gpu_release(&j.device, &j.own);
    tb_gpu_device_close(&j.device);
    return status;
}
