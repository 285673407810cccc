/* Compiled code of programs, cached by content.
 *
 * The name of a cached object is the hash of the generated text, the flags and the compiler's file,
 * so that a changed program, flag or compiler never meets old code. */
#include "modelica/native.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "modelica/cache.h"

enum { PATH_BYTES = MO_PATH_BYTES, COMPILE_SECONDS = 60 };

/* products and sums stay apart and functions of the library are not folded, as in the interpreter */
static const char *const FLAGS[] = {"-O3",
                                    "-march=x86-64-v2",
                                    "-std=gnu11",
                                    "-w",
                                    "-shared",
                                    "-fPIC",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fwrapv",
                                    "-fno-builtin",
                                    "-fvisibility=default",
                                    NULL};

struct mo_native {
    void *library;
    mo_entry **entry;
};

/* ---- the compiler ---- */

/* the first compiler of the search path */
static bool find_compiler(char *path, struct stat *info)
{
    static const char *const NAMES[] = {"cc", "gcc", "clang"};
    const char *search = getenv("PATH");
    for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++)
        for (const char *p = search != NULL ? search : "/usr/bin:/bin"; p != NULL;) {
            const char *end = strchr(p, ':');
            const int length = end != NULL ? (int)(end - p) : (int)strlen(p);
            if (length > 0 && length < PATH_BYTES - 16)
                snprintf(path, PATH_BYTES, "%.*s/%s", length, p, NAMES[k]);
            if (length > 0 && length < PATH_BYTES - 16 && stat(path, info) == 0 &&
                S_ISREG(info->st_mode) && access(path, X_OK) == 0)
                return true;
            p = end != NULL ? end + 1 : NULL;
        }
    return false;
}

/* waits for the compiler, and ends it if it takes too long */
static bool wait_for(pid_t process)
{
    const double deadline = tb_mo_seconds() + COMPILE_SECONDS;
    const struct timespec pause = {0, 1000000};
    int status = 0;
    for (;;) {
        const pid_t ended = waitpid(process, &status, WNOHANG);
        if (ended == process) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0 && errno != EINTR) return false;
        if (tb_mo_seconds() > deadline) kill(process, SIGKILL);
        nanosleep(&pause, NULL);
    }
}

static bool run_compiler(const char *compiler, const char *source, const char *object)
{
    enum { MOST = 32 };
    char *arguments[MOST];
    int count = 0;
    arguments[count++] = (char *)(uintptr_t)compiler;
    for (int k = 0; FLAGS[k] != NULL; k++) arguments[count++] = (char *)(uintptr_t)FLAGS[k];
    const char *const rest[] = {"-nostdinc", "-x", "c", source, "-o", object, "-lm"};
    for (size_t k = 0; k < sizeof rest / sizeof rest[0]; k++)
        arguments[count++] = (char *)(uintptr_t)rest[k];
    arguments[count] = NULL;
    char path[PATH_BYTES];
    const char *search = getenv("PATH");
    snprintf(path, sizeof path, "PATH=%s", search != NULL ? search : "/usr/bin:/bin");
    char language[] = "LC_ALL=C", *environment[] = {path, language, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t process = 0;
    const int failed = posix_spawn(&process, compiler, &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    return failed == 0 && wait_for(process);
}

/* Writes the text beside the object, compiles it and puts the object in its place at once. */
static tb_status compile(const char *compiler, const mo_text *text, const char *folder,
                         const char *object, tb_error *error)
{
    char source[PATH_BYTES + 32], made[PATH_BYTES + 64];
    snprintf(source, sizeof source, "%.4000s/function-XXXXXX", folder);
    const int file = mkstemp(source);
    if (file < 0)
        return tb_fail(error, TB_INTERNAL, "%s: no file for generated code: %s", folder,
                       strerror(errno));
    const bool written =
        write(file, text->bytes.base, text->bytes.size) == (ssize_t)text->bytes.size;
    close(file);
    snprintf(made, sizeof made, "%s.so", source);
    const bool compiled = written && run_compiler(compiler, source, made);
    unlink(source);
    if (compiled && rename(made, object) == 0) return TB_OK;
    unlink(made);
    return tb_fail(error, written ? TB_INTERNAL : TB_RESOURCE_EXHAUSTED,
                   "%s: generated code could not be %s", compiler,
                   written ? "compiled" : "written");
}

/* ---- loading ---- */

static tb_status load(const mo_program *program, const char *object, mo_native **native,
                      tb_error *error)
{
    if (!tb_mo_cache_owns(object))
        return tb_fail(error, TB_FAILED_PRECONDITION, "%s: not a file of this user alone", object);
    mo_native *made = calloc(1, sizeof *made);
    mo_entry **entry = calloc((size_t)program->count + 1, sizeof(mo_entry *));
    tb_status status = TB_OK;
    if (made == NULL || entry == NULL) status = tb_fail_memory(error, 0, "compiled code");
    if (status == TB_OK) made->library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (status == TB_OK && made->library == NULL)
        status = tb_fail(error, TB_DATA_LOSS, "%s", dlerror());
    for (int32_t k = 0; k < program->count && status == TB_OK; k++) {
        char name[32];
        snprintf(name, sizeof name, "entry%d", k);
        /* a function's address as an object's, as POSIX asks */
        *(void **)&entry[k] = dlsym(made->library, name);
        if (entry[k] == NULL) status = tb_fail(error, TB_DATA_LOSS, "%s lacks %s", object, name);
    }
    if (made != NULL) made->entry = entry;
    if (made == NULL) free(entry);
    if (status == TB_OK)
        *native = made;
    else
        tb_mo_native_free(made);
    return status;
}

mo_entry *tb_mo_native_entry(const mo_native *native, int32_t function)
{
    return native->entry[function];
}

void tb_mo_native_free(mo_native *native)
{
    if (native == NULL) return;
    if (native->library != NULL) dlclose(native->library);
    free(native->entry);
    free(native);
}

static void name_object(const char *compiler, const struct stat *info, const mo_text *text,
                        const char *folder, char *object)
{
    char hex[65], key[PATH_BYTES + 256];
    tb_sha256_hex(text->bytes.base, text->bytes.size, hex);
    int used = snprintf(key, sizeof key, "%s %lld %lld %s", compiler, (long long)info->st_size,
                        (long long)info->st_mtime, hex);
    for (int k = 0; FLAGS[k] != NULL; k++)
        used += snprintf(key + used, sizeof key - (size_t)used, " %s", FLAGS[k]);
    tb_sha256_hex(key, (size_t)used, hex);
    snprintf(object, PATH_BYTES + 80, "%s/%s.so", folder, hex);
}

static tb_status load_from(const mo_program *program, const tb_function_options *options,
                           const char *folder, const mo_text *text, mo_native **native,
                           double *compile_seconds, tb_error *error)
{
    char compiler[PATH_BYTES], object[PATH_BYTES + 80];
    struct stat info;
    if (!find_compiler(compiler, &info))
        return tb_fail(error, TB_UNAVAILABLE, "no C compiler (cc, gcc, clang) on the search path");
    name_object(compiler, &info, text, folder, object);
    if (access(object, R_OK) == 0 && load(program, object, native, NULL) == TB_OK) {
        /* the time of use orders the cache */
        utimensat(AT_FDCWD, object, NULL, 0);
        return TB_OK;
    }
    const double begin = tb_mo_seconds();
    tb_status status = compile(compiler, text, folder, object, error);
    *compile_seconds = tb_mo_seconds() - begin;
    if (status == TB_OK) status = load(program, object, native, error);
    if (status == TB_OK) tb_mo_cache_shrink(folder, options);
    return status;
}

tb_status tb_mo_native_load(const mo_program *program, const tb_function_options *options,
                            mo_native **native, double *compile_seconds, tb_error *error)
{
    char folder[PATH_BYTES];
    mo_text text = {0};
    tb_status status = tb_mo_emit_c(program, &text, error);
    if (status == TB_OK && tb_mo_cache_folder(options, folder, sizeof folder)) {
        status = load_from(program, options, folder, &text, native, compile_seconds, error);
    } else if (status == TB_OK) {
        /* the loaded object lives on without its name */
        snprintf(folder, sizeof folder, "/tmp/tribo-XXXXXX");
        char path[PATH_BYTES + 300];
        if (mkdtemp(folder) == NULL)
            status = tb_fail(error, TB_INTERNAL, "no temporary folder: %s", strerror(errno));
        else
            status = load_from(program, options, folder, &text, native, compile_seconds, error);
        DIR *directory = status != TB_INTERNAL ? opendir(folder) : NULL;
        for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            if (tb_mo_cache_holds(e->d_name)) unlink(path);
        }
        if (directory != NULL) closedir(directory);
        rmdir(folder);
    }
    tb_bytes_free(&text.bytes);
    return status;
}
