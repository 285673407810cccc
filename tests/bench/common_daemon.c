/* Starts and ends a benchmark's own daemon. See common_daemon.h. */
#include "common_daemon.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

void bench_daemon_start(bench_daemon *d)
{
    const char *build = getenv("TRIBO_BUILD");
    char path[512], line[256], log[96];
    int out[2];
    memset(d, 0, sizeof *d);
    snprintf(path, sizeof path, "%s/tribod", build != NULL ? build : "build");
    snprintf(d->folder, sizeof d->folder, "/tmp/tribod-bench-XXXXXX");
    if (mkdtemp(d->folder) == NULL || pipe(out) != 0) die("no scratch folder or pipe");
    snprintf(log, sizeof log, "%s/log", d->folder);

    char grpc[] = "--grpc", http[] = "--http", any[] = "127.0.0.1:0", data[] = "--data";
    char *arguments[] = {path, grpc, any, http, any, data, d->folder, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, 01101, 0600);
    posix_spawn_file_actions_addclose(&actions, out[0]);
    const double begun = bench_now();
    if (posix_spawn(&d->pid, path, &actions, NULL, arguments, environ) != 0) die("no tribod");
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);

    /* the descriptor stays open: the daemon may write to it until its end */
    FILE *answers = fdopen(out[0], "r");
    if (answers == NULL || fgets(line, sizeof line, answers) == NULL ||
        sscanf(line, "ready grpc=%63s http=%63s", d->grpc, d->http) != 2)
        die("tribod did not become ready; its log is in /tmp/tribod-bench-*/log");
    d->start_seconds = bench_now() - begun;
}

double bench_daemon_memory(const bench_daemon *d)
{
    char path[64], line[256];
    double kilobytes = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)d->pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %lf", &kilobytes) == 1) break;
    if (file != NULL) fclose(file);
    return kilobytes * 1024;
}

void bench_daemon_stop(bench_daemon *d)
{
    char command[128];
    int status = 0;
    kill(d->pid, SIGTERM);
    waitpid(d->pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) die("tribod did not stop cleanly");
    snprintf(command, sizeof command, "rm -rf '%s'", d->folder);
    if (system(command) != 0) die("the scratch folder stays");
}
