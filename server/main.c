/* tribod: the command line, signals, and the order of a life. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ops/build.h"
#include "ops/last_exit.h"
#include "wire/descriptors.h"
#include "keys_command.h"
#include "ops/notify.h"
#include "probe_command.h"
#include "server.h"

extern char **environ;

/* exit codes, as --help says */
enum {
    EXIT_FINE = 0,
    EXIT_FAILED = 1,
    EXIT_WRONG = 2,
    EXIT_DEVICE_LOST = 3,
    EXIT_OVERDUE = 4,
    EXIT_UNSAVED = 5
};

/* s, by which a drain may exceed drain_seconds before the process ends by force */
enum { OVERDUE_SECONDS = 5 };

static const char HELP[] =
    "tribod - serves contact dynamics over gRPC and HTTP\n"
    "\n"
    "  tribod [--config FILE] [OPTION...]\n"
    "\n"
    "Serving\n"
    "  --config FILE        read options from an INI file (see --print-config)\n"
    "  --grpc ADDRESS       HOST:PORT for gRPC; port 0 picks a free one; '' for none\n"
    "  --http ADDRESS       HOST:PORT for HTTP (Connect, gRPC-Web, metrics, status page)\n"
    "  --data DIR           folder of the store; '' keeps it in memory\n"
    "  --threads N          threads that simulate; 0: one for each processor\n"
    "  --log-level LEVEL    debug, info, warning or error\n"
    "  --log-format FORMAT  text or json\n"
    "\n"
    "Instead of serving\n"
    "  --check-config       say whether the configuration is right\n"
    "  --print-config       print it, with the meaning of every option; --config reads it\n"
    "  --probe              ask the daemon of this configuration whether it is ready: 0 or 1\n"
    "  --create-key NAME    make an API key and print it, once\n"
    "    --scope SCOPE      its rights: read, run or admin (default run)\n"
    "    --rate N           calls per second; 0: as [limits] calls_per_second says\n"
    "    --sessions N       sessions open at once; 0: as [limits] sessions_per_client says\n"
    "    --key-file FILE    take the key from FILE, such as a mounted secret, and print nothing;\n"
    "                       a store that has it already stays as it is\n"
    "    --days N           days until it expires; 0: never (default)\n"
    "  --revoke-key ID      end a key (a running daemon learns it within a second or so)\n"
    "  --list-keys          list keys without their secrets, with their last use\n"
    "  --list-refused-keys  list keys that were refused: why, how often, when and whence\n"
    "  --version, --help\n"
    "\n"
    "Every option of the file can also come from the environment as TRIBOD_SECTION_OPTION; flags\n"
    "overrule the environment, and that overrules the file. When ready the daemon prints one "
    "line:\n"
    "  ready grpc=HOST:PORT http=HOST:PORT\n"
    "SIGTERM and SIGINT drain: calls in flight finish, sessions are saved; a second one ends at\n"
    "once. SIGHUP reads configuration and keys again. Exit codes: 0 fine, 1 it could not start,\n"
    "2 wrong command line or configuration, 3 the last card was lost, 4 draining took too long,\n"
    "5 sessions could not be saved.\n"
    "\n"
    "Examples\n"
    "  tribod                                          on 127.0.0.1, store in ./tribod-data\n"
    "  tribod --grpc 127.0.0.1:0 --http 127.0.0.1:0 --data ''      a private one, for a test\n"
    "  tribod --print-config > tribod.ini; tribod --config tribod.ini --check-config\n"
    "  TRIBOD_LIMITS_SESSIONS=100 tribod --data /var/lib/tribod --log-format json\n"
    "  tribod --data /var/lib/tribod --create-key planner --scope run --days 90\n";

typedef enum action {
    ACTION_SERVE,
    ACTION_CHECK,
    ACTION_PRINT,
    ACTION_PROBE,
    ACTION_CREATE_KEY,
    ACTION_REVOKE_KEY,
    ACTION_LIST_KEYS,
    ACTION_LIST_REFUSED,
    ACTION_VERSION,
    ACTION_HELP
} action;

/* A flag that sets an option of the configuration. */
typedef struct setting {
    const char *flag, *section, *option;
    const char *value; /* NULL: not given */
} setting;

enum { SETTINGS = 6 };

typedef struct command_line {
    const char *config_path; /* NULL: none */
    setting settings[SETTINGS];
    action what;
    const char *key; /* name or id */
    td_key_request key_request;
} command_line;

/* ---- the command line
 * ------------------------------------------------------------------------- */

static int complain(const char *message)
{
    fprintf(stderr, "tribod: %s\n", message);
    return EXIT_WRONG;
}

/* Takes the flags; EXIT_FINE, or EXIT_WRONG after saying why. */
static int parse_flags(int argc, char **argv, command_line *line)
{
    enum {
        FLAG_CONFIG = 256,
        FLAG_SETTING,
        FLAG_SCOPE,
        FLAG_RATE,
        FLAG_SESSIONS,
        FLAG_DAYS,
        FLAG_KEY_FILE,
        FLAG_ACTION
    };
    static const struct option FLAGS[] = {
        {"grpc", required_argument, NULL, FLAG_SETTING},
        {"http", required_argument, NULL, FLAG_SETTING},
        {"data", required_argument, NULL, FLAG_SETTING},
        {"threads", required_argument, NULL, FLAG_SETTING},
        {"log-level", required_argument, NULL, FLAG_SETTING},
        {"log-format", required_argument, NULL, FLAG_SETTING},
        {"config", required_argument, NULL, FLAG_CONFIG},
        {"scope", required_argument, NULL, FLAG_SCOPE},
        {"rate", required_argument, NULL, FLAG_RATE},
        {"sessions", required_argument, NULL, FLAG_SESSIONS},
        {"days", required_argument, NULL, FLAG_DAYS},
        {"key-file", required_argument, NULL, FLAG_KEY_FILE},
        {"check-config", no_argument, NULL, FLAG_ACTION + ACTION_CHECK},
        {"print-config", no_argument, NULL, FLAG_ACTION + ACTION_PRINT},
        {"probe", no_argument, NULL, FLAG_ACTION + ACTION_PROBE},
        {"create-key", required_argument, NULL, FLAG_ACTION + ACTION_CREATE_KEY},
        {"revoke-key", required_argument, NULL, FLAG_ACTION + ACTION_REVOKE_KEY},
        {"list-keys", no_argument, NULL, FLAG_ACTION + ACTION_LIST_KEYS},
        {"list-refused-keys", no_argument, NULL, FLAG_ACTION + ACTION_LIST_REFUSED},
        {"version", no_argument, NULL, FLAG_ACTION + ACTION_VERSION},
        {"help", no_argument, NULL, FLAG_ACTION + ACTION_HELP},
        {NULL, 0, NULL, 0}};
    *line = (command_line){.settings = {{"--grpc", "server", "grpc_address", NULL},
                                        {"--http", "server", "http_address", NULL},
                                        {"--data", "server", "data", NULL},
                                        {"--threads", "server", "threads", NULL},
                                        {"--log-level", "log", "level", NULL},
                                        {"--log-format", "log", "format", NULL}},
                           .key_request = {.scope = "run"}};
    int index = 0;
    for (int flag; (flag = getopt_long(argc, argv, "h", FLAGS, &index)) != -1;) {
        if (flag == '?') return complain("see tribod --help");
        if (flag == 'h') flag = FLAG_ACTION + ACTION_HELP;
        if (flag == FLAG_CONFIG) line->config_path = optarg;
        if (flag == FLAG_SETTING) line->settings[index].value = optarg;
        if (flag == FLAG_SCOPE) line->key_request.scope = optarg;
        if (flag == FLAG_RATE) line->key_request.rate = optarg;
        if (flag == FLAG_SESSIONS) line->key_request.sessions = optarg;
        if (flag == FLAG_KEY_FILE) line->key_request.file = optarg;
        if (flag == FLAG_DAYS) line->key_request.days = optarg;
        if (flag < FLAG_ACTION) continue;
        if (line->what != ACTION_SERVE && line->what != (action)(flag - FLAG_ACTION))
            return complain(
                "only one of --check-config, --print-config, --probe, "
                "--create-key, --revoke-key, --list-keys, --list-refused-keys, --version and "
                "--help");
        line->what = (action)(flag - FLAG_ACTION);
        line->key = optarg;
    }
    if (optind == argc) return EXIT_FINE;
    fprintf(stderr, "tribod: '%s' is no option; see tribod --help\n", argv[optind]);
    return EXIT_WRONG;
}

/* File, environment, flags. */
static tb_status read_config(const command_line *line, td_config *config, tb_error *error)
{
    tb_status status = TB_OK;
    *config = td_config_defaults();
    if (line->config_path != NULL) status = td_config_read(config, line->config_path, error);
    if (status == TB_OK) status = td_config_environment(config, environ, error);
    for (int i = 0; i < SETTINGS && status == TB_OK; i++) {
        const setting *s = &line->settings[i];
        if (s->value != NULL)
            status = td_config_set(config, s->section, s->option, s->value, s->flag, error);
    }
    return status;
}

/* ---- signals
 * ---------------------------------------------------------------------------------- */

static void end_at_once(int signal_number)
{
    static const char OVERDUE[] = "tribod: draining took too long\n";
    static const char SECOND[] = "tribod: second signal, ending at once\n";
    const bool overdue = signal_number == SIGALRM;
    const ssize_t ignored = write(STDERR_FILENO, overdue ? OVERDUE : SECOND,
                                  overdue ? sizeof OVERDUE - 1 : sizeof SECOND - 1);
    (void)ignored;
    _exit(overdue ? EXIT_OVERDUE : 128 + signal_number);
}

/* From here on a signal ends the process, and so does time. */
static void stop_waiting(const sigset_t *waited_for, double drain_seconds)
{
    const struct sigaction ending = {.sa_handler = end_at_once};
    sigaction(SIGTERM, &ending, NULL);
    sigaction(SIGINT, &ending, NULL);
    sigaction(SIGALRM, &ending, NULL);
    signal(SIGHUP, SIG_IGN);
    alarm((unsigned)(drain_seconds + 0.999) + OVERDUE_SECONDS);
    pthread_sigmask(SIG_UNBLOCK, waited_for, NULL);
}

/* Blocks the signals that the main thread waits for; threads that start later inherit the mask. */
static sigset_t block_signals(void)
{
    sigset_t set;
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return set;
}

/* ---- serving
 * ---------------------------------------------------------------------------------- */

/* Records this process's exit status for the next process. */
static void tell_last_exit(td_server *server, tb_status written, const tb_error *error)
{
    if (written != TB_OK)
        td_log_write(server->log, TB_LOG_WARNING, "last_exit.not_kept", "reason=%s",
                     error->message);
}

static void begin_last_exit(td_server *server)
{
    int last;
    tb_error error = {.status = TB_OK};
    tell_last_exit(server, td_last_exit_begin(server->config->data, &last, &error), &error);
    td_metrics_set(server->metrics, TD_METRIC_LAST_EXIT, last);
}

static void end_last_exit(td_server *server, int code)
{
    tb_error error = {.status = TB_OK};
    tell_last_exit(server, td_last_exit_end(server->config->data, code, &error), &error);
}

/* The old configuration goes on where the new one is wrong. */
static void reload(td_server *server, const command_line *line)
{
    td_config config;
    tb_error error = {.status = TB_OK};
    td_notify_reloading();
    tb_status status = TB_OK;
    if (line->config_path != NULL && !td_config_again(line->config_path))
        config = *server->config; /* a pipe said all it had at the start */
    else
        status = read_config(line, &config, &error);
    if (status == TB_OK) status = td_config_check(&config, &error);
    if (status == TB_OK) status = td_server_reload(server, &config, &error);
    if (status == TB_OK)
        td_log_write(server->log, TB_LOG_INFO, "config.reloaded", "file=%s",
                     line->config_path != NULL ? line->config_path : "");
    else
        td_log_write(server->log, TB_LOG_ERROR, "config.kept", "reason=%s", error.message);
    td_notify("READY=1");
}

/* Waits for the signal that ends the daemon. EXIT_FINE, or EXIT_DEVICE_LOST. */
static int wait_for_end(td_server *server, const command_line *line, const sigset_t *signals)
{
    const int64_t watchdog_ns = td_notify_watchdog_ns();
    int64_t interval = 1000000000;
    if (watchdog_ns > 0 && watchdog_ns / 3 < interval) interval = watchdog_ns / 3;
    const struct timespec timeout = {.tv_sec = (time_t)(interval / 1000000000),
                                     .tv_nsec = (long)(interval % 1000000000)};
    for (;;) {
        const int received = sigtimedwait(signals, NULL, &timeout);
        if (!atomic_load(&server->alive)) return EXIT_DEVICE_LOST;
        if (watchdog_ns > 0) td_notify("WATCHDOG=1");
        td_server_look_after(server);
        if (received == SIGHUP) reload(server, line);
        if (received == SIGTERM || received == SIGINT) return EXIT_FINE;
    }
}

static int fail(const char *what, const tb_error *error, int code)
{
    fprintf(stderr, "tribod: %s: %s\n", what, error->message);
    return code;
}

static int serve(const command_line *line, const td_config *config)
{
    td_server *server = NULL;
    tb_error error = {.status = TB_OK};
    const sigset_t signals = block_signals();
    td_descriptors_raise();
    if (td_server_create(config, &server, &error) != TB_OK)
        return fail("cannot start", &error, EXIT_FAILED);
    if (td_server_start(server, &error) != TB_OK) {
        td_server_destroy(server);
        return fail("cannot start", &error, EXIT_FAILED);
    }
    begin_last_exit(server);
    printf("ready grpc=%s http=%s\n", td_server_grpc_address(server),
           td_server_http_address(server));
    fflush(stdout);
    td_notify("READY=1");

    int code = wait_for_end(server, line, &signals);
    td_notify("STOPPING=1");
    stop_waiting(&signals, server->config->drain_seconds);
    if (code == EXIT_DEVICE_LOST)
        td_log_write(server->log, TB_LOG_ERROR, "device.lost",
                     "sessions=as_last_fetched_or_checkpointed");
    td_server_drain(server);
    if (atomic_load(&server->unsaved) && code == EXIT_FINE) code = EXIT_UNSAVED;
    end_last_exit(server, code);
    td_server_destroy(server);
    return code;
}

/* OpenMP's threads spin for milliseconds after each parallel loop, in case another one follows.
 * Here the transports need the processors in between, and on a busy machine the device's owner
 * would wait for spinning threads that are not scheduled: a tenth of the throughput. The runtime
 * reads its environment when it is loaded, so the program restarts itself with the setting. */
static void sleep_between_loops(char **argv)
{
    char path[4096];
    if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL) return;
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0 || setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    path[length] = '\0';
    execv(path, argv); /* where that is not possible, it goes on as it is */
}

int main(int argc, char **argv)
{
    command_line line;
    td_config config;
    tb_error error = {.status = TB_OK};
    int code = parse_flags(argc, argv, &line);
    if (code != EXIT_FINE) return code;
    if (line.what == ACTION_HELP) return fputs(HELP, stdout) < 0;
    if (line.what == ACTION_VERSION) return printf("tribod %s (%s)\n", TB_VERSION, td_build()) < 0;

    /* before a pipe with the configuration is read: the new process could not read it again */
    if (line.what == ACTION_SERVE) sleep_between_loops(argv);
    tb_status status = read_config(&line, &config, &error);
    if (status == TB_OK) status = td_config_check(&config, &error);
    if (status != TB_OK) return fail("configuration", &error, EXIT_WRONG);
    switch (line.what) {
    case ACTION_CHECK: return printf("the configuration is right\n") < 0;
    case ACTION_PRINT: td_config_print(&config, stdout); return ferror(stdout) != 0;
    case ACTION_PROBE:
        status = td_probe(&config, &error);
        return status == TB_OK ? EXIT_FINE : fail("probe", &error, EXIT_FAILED);
    case ACTION_CREATE_KEY:
        status = td_key_create(&config, line.key, &line.key_request, &error);
        break;
    case ACTION_REVOKE_KEY: status = td_key_revoke(&config, line.key, &error); break;
    case ACTION_LIST_KEYS: status = td_key_list(&config, &error); break;
    case ACTION_LIST_REFUSED: status = td_key_list_refused(&config, &error); break;
    default: return serve(&line, &config);
    }
    if (status != TB_OK)
        code = fail("keys", &error, status == TB_INVALID_ARGUMENT ? EXIT_WRONG : EXIT_FAILED);
    return code;
}
