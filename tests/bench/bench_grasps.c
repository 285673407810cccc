/* A grasp job of one caller: hand and mug, poses a little apart, each with its copies.
 *
 *   bench_grasps [--backend cpu] [--threads N] [--copies N] [--float] [POSES ...]   (1 64 1024 8192)
 *
 * A line of JSON for each number of poses: time until the first result and until the last, steps of
 * worlds by second, how many held, and a digest of all trials and contacts, by which two builds show
 * that they play the same. */
#include <stddef.h>
#include <unistd.h>

#include "common_worlds.h"

/* FNV-1a */
static uint64_t digest(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t digest_result(uint64_t hash, const tb_grasp_result *r)
{
    for (int32_t i = 0; i < r->number_of_trials; i++) {
        const tb_grasp_trial *t = &r->trials[i];
        const double numbers[] = {t->verdict,
                                  t->slip,
                                  t->drop_time,
                                  (double)t->steps,
                                  t->friction,
                                  t->mass,
                                  t->certificate.residual,
                                  t->certificate.penetration,
                                  t->certificate.iterations,
                                  t->certificate.energy_change};
        hash = digest(hash, numbers, sizeof numbers);
    }
    for (int32_t i = 0; i < r->number_of_contacts; i++)
        hash = digest(hash, r->contacts[i].position,
                      sizeof r->contacts[i] - offsetof(tb_grasp_contact, position));
    const double last[] = {r->epsilon, r->volume, r->margin, r->success};
    return digest(hash, last, sizeof last);
}

static tb_scene *load(const char *folder, const char *file, bool fixed)
{
    char path[700];
    tb_error error;
    tb_scene *scene = NULL;
    tb_import_options options = tb_import_defaults();
    options.fixed_base = fixed;
    options.density = 2400;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    bench_check(tb_scene_load(path, &options, &scene, &error), &error);
    return scene;
}

static void play(const tb_grasp_request *request)
{
    const double begin = bench_now();
    double first = 0;
    int32_t held = 0, trials = 0;
    uint64_t hash = 0xcbf29ce484222325u;
    bool finished = false;
    tb_grasp_job *job = NULL;
    tb_error error;
    bench_check(tb_grasp_job_create(request, &job, &error), &error);
    const double made = bench_now();
    while (!finished) {
        bench_check(tb_grasp_job_advance(job, 50000000, &finished, &error), &error);
        for (const tb_grasp_result *r; (r = tb_grasp_job_next(job)) != NULL;) {
            if (first == 0) first = bench_now();
            for (int32_t i = 0; i < r->number_of_trials; i++)
                held += r->trials[i].verdict == TB_GRASP_HELD;
            trials += r->number_of_trials;
            hash = digest_result(hash, r);
        }
    }
    const double end = bench_now(), steps = (double)tb_grasp_job_progress(job).world_steps_done;
    printf("{\"bench\": \"grasps\", \"backend\": \"%s\", \"precision\": \"%s\", \"poses\": %d, "
           "\"trials\": %d, \"held\": %d, \"world_steps\": %.0f, \"making_s\": %.4g, "
           "\"first_result_s\": %.4g, \"seconds\": %.4g, \"world_steps_per_second\": %.5g, "
           "\"digest\": \"%016llx\"}\n",
           request->step.backend == TB_BACKEND_CPU ? "cpu" : "gpu",
           request->step.precision == TB_FLOAT ? "float" : "double", request->number_of_poses,
           trials, held, steps, made - begin, first - begin, end - begin, steps / (end - made),
           (unsigned long long)hash);
    fflush(stdout);
    tb_grasp_job_destroy(job);
}

static void play_poses(tb_grasp_request *request, int32_t count)
{
    tb_grasp_pose *poses = calloc((size_t)count, sizeof *poses);
    if (poses == NULL) exit(1);
    for (int32_t i = 0; i < count; i++) {
        poses[i] = tb_grasp_pose_defaults();
        poses[i].position[2] = 0.055 - 0.0001 * (i % 100);
        poses[i].force = 20;
    }
    request->poses = poses;
    request->number_of_poses = count;
    play(request);
    free(poses);
}

int main(int argc, char **argv)
{
    static const char *const closing[] = {"close_left", "close_right"};
    char folder[] = "/tmp/tribo_grasps_XXXXXX", text[1500];
    int32_t counts[16] = {1, 64, 1024, 8192}, given = 0;
    tb_grasp_request request = tb_grasp_defaults();
    request.step.backend = TB_BACKEND_GPU;
    request.step.threads = 0;
    request.perturbation.position = 1e-3;
    request.perturbation.friction = 0.1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            request.step.backend = strcmp(argv[++i], "cpu") == 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            request.step.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--copies") == 0 && i + 1 < argc)
            request.perturbation.count = atoi(argv[++i]);
        else if (strcmp(argv[i], "--float") == 0)
            request.step.precision = TB_FLOAT;
        else if (given < 16)
            counts[given++] = atoi(argv[i]);
    }
    const char *build = bench_build_folder();
    snprintf(text, sizeof text, "%s/libtribo_gpu.so", build);
    if (setenv("TRIBO_GPU_PLUGIN", text, 0) != 0 || mkdtemp(folder) == NULL) return 2;
    snprintf(text, sizeof text,
             "'%s/tests/data/mug' %s 1 > /dev/null; '%s/tests/data/hand' %s > /dev/null", build,
             folder, build, folder);
    if (system(text) != 0) return 1;
    tb_scene *hand = load(folder, "hand.xml", true), *mug = load(folder, "mug.obj", false);
    request.hand.scene = hand;
    request.hand.closing = closing;
    request.hand.number_of_closing = 2;
    request.object.scene = mug;
    request.object.friction = 0.7;
    request.protocol.lift = 0.05;
    request.protocol.lift_seconds = 0.2;
    request.protocol.hold_seconds = 0.2;
    for (int32_t i = 0; i < (given > 0 ? given : 4); i++) play_poses(&request, counts[i]);
    tb_scene_destroy(hand);
    tb_scene_destroy(mug);
    return 0;
}
