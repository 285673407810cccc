/* A card that is played: libcuda and libnvrtc for tests of generated kernels on machines without one.
 *
 * NVRTC's part compiles the CUDA text by g++ behind a few definitions; the driver's part runs a
 * launch thread by thread on the host; kernels whose names do not begin with k have barriers, and each
 * thread of their block runs to the barrier before any goes on. Blocks of a cooperative launch run to a
 * barrier in turn, each with its own content of the shared memory. Memory of the card is host memory at
 * other addresses, so that a copy that is forgotten shows. Compiled twice, once for each library's
 * name. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

typedef void *handle;
typedef unsigned long long pointer;

/* ---- NVRTC ---- */

/* Machine code: the size of a shared object, then the object. */
typedef struct program {
    char *source, *code;
    size_t size;
} program;

/* for tests: how often a program was compiled, and the kernels of the last one */
int played_compilations, played_kernels;

static const char SHIM[] =
    "#include <cmath>\n#include <cstring>\nusing namespace std;\n"
    "#define __shared__ static __attribute__((section(\"mo_shared\")))\n#define __align__(n) "
    "__attribute__((aligned(n)))\n#define "
    "__device__\n#define __global__\n#define __forceinline__ "
    "inline\n#define __noinline__\n"
    "#define MO_PARAMETER(type) const struct type &\n#define __launch_bounds__(n)\n"
    "struct mo_three { unsigned x, y, z; };\n"
    "extern \"C\" { mo_three blockIdx, threadIdx, blockDim, gridDim; }\n"
    "static inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8);\n"
    "  return y; }\n"
    "static inline unsigned long long atomicCAS(unsigned long long *at, unsigned long long p,\n"
    "    unsigned long long q) { const unsigned long long x = *at; if (x == p) *at = q; return x; "
    "}\n"
    "static inline void atomicExch(unsigned long long *at, unsigned long long x) { *at = x; }\n"
    "static inline void __threadfence() {}\n"
    "extern \"C\" { void (*mo_wait)(); }\n"
    "extern \"C\" __attribute__((weak, visibility(\"hidden\"))) char __start_mo_shared[],\n"
    "    __stop_mo_shared[];\n"
    "extern \"C\" { char *mo_shared_begin = __start_mo_shared, *mo_shared_end = __stop_mo_shared; "
    "}\n"
    "static inline void __syncthreads() { mo_wait(); }\n";

int nvrtcVersion(int *major, int *minor)
{
    *major = 0;
    *minor = 0;
    return 0;
}

int nvrtcCreateProgram(handle *made, const char *source, const char *name, int headers,
                       const char *const *texts, const char *const *names)
{
    program *p = calloc(1, sizeof *p);
    (void)name, (void)headers, (void)texts, (void)names;
    p->source = strdup(source);
    *made = p;
    return 0;
}

int nvrtcCompileProgram(handle made, int count, const char *const *options)
{
    program *p = made;
    char object[64], source[80], command[400];
    (void)count, (void)options;
    played_compilations++;
    played_kernels = 0;
    for (const char *at = p->source; (at = strstr(at, "__global__")) != NULL; at++)
        played_kernels++;
    snprintf(object, sizeof object, "/tmp/played-XXXXXX");
    close(mkstemp(object));
    snprintf(source, sizeof source, "%s.cc", object);
    FILE *file = fopen(source, "w");
    fputs(SHIM, file);
    fputs(p->source, file);
    fclose(file);
    snprintf(command, sizeof command,
             "g++ -std=c++17 -O0 -w -shared -fPIC -ffp-contract=off -fno-builtin -o %s %s", object,
             source);
    const int failed = system(command);
    if (!failed) unlink(source);
    file = fopen(object, "rb");
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    p->size = sizeof p->size + (size_t)size;
    p->code = malloc(p->size);
    memcpy(p->code, &p->size, sizeof p->size);
    const size_t read = fread(p->code + sizeof p->size, 1, (size_t)size, file);
    fclose(file);
    unlink(object);
    return failed || read != (size_t)size;
}

int nvrtcGetCUBINSize(handle made, size_t *size)
{
    *size = ((program *)made)->size;
    return 0;
}

int nvrtcGetCUBIN(handle made, char *code)
{
    memcpy(code, ((program *)made)->code, ((program *)made)->size);
    return 0;
}

int nvrtcGetProgramLogSize(handle made, size_t *size)
{
    (void)made;
    *size = 1;
    return 0;
}

int nvrtcGetProgramLog(handle made, char *log)
{
    (void)made;
    *log = '\0';
    return 0;
}

int nvrtcDestroyProgram(handle *made)
{
    free(((program *)*made)->source);
    free(((program *)*made)->code);
    free(*made);
    return 0;
}

/* ---- the driver ---- */

enum { PROCESSORS = 4 }; /* of the card; each runs one block of a cooperative launch */

typedef struct function {
    void (*call)(void *parameters);
    void *library;
    int has_barriers;
} function;

int cuInit(unsigned flags)
{
    return (int)(flags & 0);
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : PROCESSORS;
    return device;
}

int cuDevicePrimaryCtxRetain(handle *context, int device)
{
    static int one;
    *context = &one;
    return device;
}

int cuCtxSetCurrent(handle context)
{
    return context == NULL;
}

int cuStreamCreate(handle *stream, unsigned flags)
{
    static int one;
    *stream = &one;
    return (int)(flags & 0);
}

int cuStreamSynchronize(handle stream)
{
    return stream == NULL;
}

int cuModuleLoadData(handle *module, const void *image)
{
    size_t size;
    char object[64] = "/tmp/played-XXXXXX";
    if (memcmp(image, "\177ELF", 4) == 0) return 1; /* of NVIDIA's NVRTC: no card runs it here */
    memcpy(&size, image, sizeof size);
    const int file = mkstemp(object);
    const long rest = (long)(size - sizeof size);
    if (write(file, (const char *)image + sizeof size, (size_t)rest) == rest)
        *module = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    close(file);
    unlink(object);
    if (*module == NULL) fprintf(stderr, "played card: %s\n", dlerror());
    return *module == NULL;
}

int cuModuleUnload(handle module)
{
    return dlclose(module);
}

int cuModuleGetFunction(handle *made, handle module, const char *name)
{
    static function functions[4096];
    static int count;
    function *f = &functions[count++ % 4096];
    f->library = module;
    f->has_barriers = name[0] != 'k';
    *(void **)&f->call = dlsym(module, name);
    *made = f;
    return f->call == NULL;
}

/* for tests: bytes copied to the card, and arrays that it holds */
long long played_uploaded;
int played_arrays;

int cuMemAlloc_v2(pointer *made, size_t bytes)
{
    *made = (pointer)(size_t)malloc(bytes + 1);
    memset((void *)(size_t)*made, 0x5a, bytes);
    return 0;
}

int cuMemAllocAsync(pointer *made, size_t bytes, handle stream)
{
    (void)stream;
    played_arrays++;
    return cuMemAlloc_v2(made, bytes);
}

int cuMemFreeAsync(pointer at, handle stream)
{
    (void)stream;
    played_arrays--;
    free((void *)(size_t)at);
    return 0;
}

int cuMemcpyHtoDAsync_v2(pointer to, const void *from, size_t bytes, handle stream)
{
    memcpy((void *)(size_t)to, from, bytes);
    played_uploaded += (long long)bytes;
    return stream == NULL;
}

int cuMemcpyDtoHAsync_v2(void *to, pointer from, size_t bytes, handle stream)
{
    memcpy(to, (void *)(size_t)from, bytes);
    return stream == NULL;
}

int cuMemcpyDtoDAsync_v2(pointer to, pointer from, size_t bytes, handle stream)
{
    memcpy((void *)(size_t)to, (void *)(size_t)from, bytes);
    return stream == NULL;
}

int cuMemsetD8Async(pointer at, unsigned char byte, size_t count, handle stream)
{
    memset((void *)(size_t)at, byte, count);
    return stream == NULL;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    *memory = calloc(1, bytes);
    return (int)(flags & 0);
}

int cuDeviceGetDefaultMemPool(handle *pool, int device)
{
    *pool = NULL;
    return device;
}

int cuMemPoolSetAttribute(handle pool, int attribute, void *value)
{
    return pool != NULL || attribute < 0 || value == NULL;
}

int cuEventCreate(handle *event, unsigned flags)
{
    static int one;
    *event = &one;
    return (int)(flags & 0);
}

int cuEventRecord(handle event, handle stream)
{
    return event == NULL || stream == NULL;
}

int cuEventElapsedTime(float *ms, handle begin, handle end)
{
    *ms = 1;
    return begin == NULL || end == NULL;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, handle f, int threads, size_t shared)
{
    *blocks = 1;
    return f == NULL || threads < 1 || shared > 1 << 20;
}

typedef struct three {
    unsigned x, y, z;
} three;

/* Blocks whose threads run to the next barrier, one after the other. */
enum { MOST_THREADS = 2048, STACK_BYTES = 1 << 16 };
static struct {
    ucontext_t context[MOST_THREADS], scheduler;
    char *stacks;
    int ended[MOST_THREADS];
    unsigned current;
    const function *f;
    void *parameters;
} grid;

static void wait_at_barrier(void)
{
    swapcontext(&grid.context[grid.current], &grid.scheduler);
}

static void run_thread(void)
{
    grid.f->call(grid.parameters);
    grid.ended[grid.current] = 1;
}

static void start_threads(const function *f, void *parameters, unsigned threads)
{
    if (grid.stacks == NULL) grid.stacks = malloc((size_t)MOST_THREADS * STACK_BYTES);
    grid.f = f;
    grid.parameters = parameters;
    *(void (**)(void))dlsym(f->library, "mo_wait") = wait_at_barrier;
    for (unsigned t = 0; t < threads; t++) {
        getcontext(&grid.context[t]);
        grid.context[t].uc_stack.ss_sp = grid.stacks + (size_t)t * STACK_BYTES;
        grid.context[t].uc_stack.ss_size = STACK_BYTES;
        grid.context[t].uc_link = &grid.scheduler;
        makecontext(&grid.context[t], run_thread, 0);
        grid.ended[t] = 0;
    }
}

/* Runs the threads of a block to their next barrier; how many go on behind it. */
static unsigned run_to_barrier(three *thread, unsigned block, unsigned threads)
{
    unsigned running = 0;
    for (unsigned t = 0; t < threads; t++) {
        grid.current = block * threads + t;
        if (grid.ended[grid.current]) continue;
        *thread = (three){t, 0, 0};
        swapcontext(&grid.scheduler, &grid.context[grid.current]);
        running += !grid.ended[grid.current];
    }
    return running;
}

static void run_block(const function *f, void *parameters, three *thread, unsigned threads)
{
    start_threads(f, parameters, threads);
    while (run_to_barrier(thread, 0, threads) > 0) {
    }
}

int cuLaunchKernel(handle made, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, handle stream, void **parameters, void **extra)
{
    const function *f = made;
    three *place = dlsym(f->library, "blockIdx"), *thread = dlsym(f->library, "threadIdx");
    *(three *)dlsym(f->library, "blockDim") = (three){bx, by, bz};
    *(three *)dlsym(f->library, "gridDim") = (three){gx, gy, gz};
    for (unsigned k = 0; k < gx; k++) {
        *place = (three){k, 0, 0};
        if (f->has_barriers) run_block(f, parameters[0], thread, bx);
        for (unsigned t = 0; t < bx && !f->has_barriers; t++) {
            *thread = (three){t, 0, 0};
            f->call(parameters[0]);
        }
    }
    return shared > 0 || stream == NULL || extra != NULL;
}

/* for tests: cooperative launches */
int played_together;

int cuLaunchCooperativeKernel(handle made, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, handle stream,
                              void **parameters)
{
    const function *f = made;
    three *place = dlsym(f->library, "blockIdx"), *thread = dlsym(f->library, "threadIdx");
    char *memory = *(char **)dlsym(f->library, "mo_shared_begin");
    const size_t size = (size_t)(*(char **)dlsym(f->library, "mo_shared_end") - memory);
    if (gx > PROCESSORS || gx * bx > MOST_THREADS || shared > 0 || stream == NULL) return 1;
    *(three *)dlsym(f->library, "blockDim") = (three){bx, by, bz};
    *(three *)dlsym(f->library, "gridDim") = (three){gx, gy, gz};
    char *saved = malloc(gx * size + 1);
    memset(saved, 0x5a, gx * size);
    start_threads(f, parameters[0], gx * bx);
    for (unsigned running = 1; running > 0;) {
        running = 0;
        for (unsigned k = 0; k < gx; k++) {
            *place = (three){k, 0, 0};
            memcpy(memory, saved + k * size, size);
            running += run_to_barrier(thread, k, bx);
            memcpy(saved + k * size, memory, size);
        }
    }
    free(saved);
    played_together++;
    return 0;
}
