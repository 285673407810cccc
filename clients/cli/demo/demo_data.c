/* Runs the generators of tests/data, which the build puts beside the program, to make the demo's
 * scene. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "demo/demo.h"

static tb_status program_folder(char *folder, size_t size, tb_error *error)
{
    const ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0 || (size_t)length >= size - 1)
        return cli_fail(error, TB_FAILED_PRECONDITION, "/proc/self/exe", 0, NULL,
                        "does not tell where tribo lies; give the demo's files by --data");
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL) *slash = '\0';
    return TB_OK;
}

/* Runs one generator, its list of files thrown away. */
static tb_status generate(const char *program, char *folder, char *argument, tb_error *error)
{
    extern char **environ;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", program);
    char *arguments[] = {path, folder, argument, NULL};

    pid_t child = 0;
    int ended = 0;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    const int failure = posix_spawn(&child, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0)
        return cli_fail(error, TB_NOT_FOUND, path, 0, NULL,
                        "%s: the demo's scene comes from this generator (`make all` builds it); or "
                        "give a folder with grasp.xml by --data",
                        strerror(failure));
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR)
            return cli_fail(error, TB_INTERNAL, path, 0, NULL, "%s", strerror(errno));
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        return cli_fail(error, TB_INTERNAL, path, 0, NULL, "the generator failed");
    return TB_OK;
}

tb_status demo_make_data(double friction, char *folder, size_t size, tb_error *error)
{
    char program[PATH_MAX], home[PATH_MAX / 2], number[32];
    tb_status status = program_folder(home, sizeof home, error);
    if (status != TB_OK) return status;
    if ((size_t)snprintf(folder, size, "%s/demo-alone", home) >= size)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, home, 0, NULL, "the path is too long");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cli_fail(error, TB_INVALID_ARGUMENT, folder, 0, NULL, "cannot be made: %s",
                        strerror(errno));

    snprintf(program, sizeof program, "%s/tests/data/mug", home);
    status = generate(program, folder, NULL, error);
    if (status != TB_OK) return status;
    snprintf(program, sizeof program, "%s/tests/data/hand", home);
    snprintf(number, sizeof number, "%.9g", friction);
    return generate(program, folder, number, error);
}
