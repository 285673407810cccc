/* tribo hand: the frame, the controls and the opening of a hand, as grasps use it. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "grasp/grasp.h"

static const args_command COMMAND = {
    .name = "hand",
    .operands = "FILE",
    .description =
        "Draws a hand (MJCF or URDF) as SVG: its shapes open and closed, the tool frame that "
        "poses\n"
        "place, the closing axis and the opening. Without --profile the hand is looked for among "
        "the\n"
        "known ones by its joints. With --out the controls and their sources come as text.\n",
    .examples = "  tribo hand hand.xml --out hand.svg\n"
                "  tribo hand panda_gripper.xml --profile panda --out panda.svg\n"
                "  tribo hand hand.xml --closing left,right --open 0,0 --close 10,10 --json\n",
    .minimum_operands = 1,
    .maximum_operands = 1};

static void print_text(const tb_hand_info *h)
{
    const double *p = h->tool_position, *q = h->tool_orientation;
    printf("profile   %s\n", h->profile[0] != '\0' ? h->profile : "none");
    printf("base      %s\n", h->base[0] != '\0' ? h->base : "the world of the file");
    printf("tool      (%.4g, %.4g, %.4g) m, orientation (%.4g, %.4g, %.4g, %.4g)\n", p[0], p[1],
           p[2], q[0], q[1], q[2], q[3]);
    printf("axis      (%.3f, %.3f, %.3f) in the tool frame\n", h->axis[0], h->axis[1], h->axis[2]);
    printf("opening   %.1f mm, closed %.1f mm\n\n", 1e3 * h->opening, 1e3 * h->least_opening);
    printf("%-32s %10s %10s  %s\n", "actuator", "open", "closed", "source");
    for (int32_t i = 0; i < h->number_of_controls; i++) {
        const tb_hand_control *c = &h->controls[i];
        printf("%-32s %10.4g %10.4g  %s\n", c->actuator, c->open, c->close,
               tb_control_source_name(c->source));
    }
    printf("\n%-32s %26s %26s\n", "fingertip", "open (mm, tool frame)", "closed");
    for (int32_t i = 0; i < h->number_of_tips; i++) {
        const tb_hand_tip *t = &h->tips[i];
        printf("%-32s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", t->body, 1e3 * t->open[0],
               1e3 * t->open[1], 1e3 * t->open[2], 1e3 * t->close[0], 1e3 * t->close[1],
               1e3 * t->close[2]);
    }
}

static void print_json(const tb_hand *hand, const char *drawing)
{
    const tb_hand_info *h = tb_hand_describe(hand);
    json_t *object = grasp_json_hand(h), *tips = json_array(), *warnings = json_array();
    for (int32_t i = 0; i < h->number_of_tips; i++) {
        json_t *tip = json_object();
        json_object_set_new(tip, "body", json_text(h->tips[i].body));
        json_object_set_new(tip, "open", json_vector(h->tips[i].open, 3));
        json_object_set_new(tip, "close", json_vector(h->tips[i].close, 3));
        json_array_append_new(tips, tip);
    }
    for (int32_t i = 0; i < tb_hand_number_of_warnings(hand); i++)
        json_array_append_new(warnings, json_text(tb_hand_warning(hand, i)));
    json_object_set_new(object, "tips", tips);
    json_object_set_new(object, "warnings", warnings);
    if (drawing != NULL) json_object_set_new(object, "drawing", json_text(drawing));
    json_print(stdout, object);
}

static tb_status draw(const tb_hand *hand, const char *title, const char *path, tb_error *error)
{
    FILE *file = NULL;
    if (path == NULL) return hand_draw(stdout, hand, title, error);
    tb_status status = files_create(path, &file, error);
    if (status != TB_OK) return status;
    status = hand_draw(file, hand, title, error);
    if (status != TB_OK) {
        files_abandon(file, path);
        return status;
    }
    return files_close(file, path, error);
}

static tb_status make(const grasp_options *o, grasp_task *task, tb_hand **hand, tb_error *error)
{
    memset(task, 0, sizeof *task);
    task->request = tb_grasp_defaults();
    tb_status status = grasp_task_load(o, o->hand, true, &task->hand, error);
    if (status == TB_OK) status = grasp_task_hand(o, task, error);
    if (status != TB_OK) return status;
    task->request.hand.scene = task->hand;
    if (o->profile == NULL && o->tool == NULL)
        task->request.hand.profile = tb_hand_profile_match(task->hand);
    return tb_hand_create(&task->request.hand, hand, error);
}

int command_hand(int argc, char **argv)
{
    grasp_options o = {0};
    const char *out = NULL;
    args_option import[IMPORTING_OPTIONS];
    importing_option_list(&o.import, import);
    const args_option options[] = {
        {"profile", "NAME", "a known hand (looked for by the joints)", ARGS_TEXT, &o.profile, 0, 0,
         NULL},
        {"closing", "NAMES", "actuators that close the hand", ARGS_TEXT, &o.closing, 0, 0, NULL},
        {"open", "NUMBERS", "their controls when it is open", ARGS_TEXT, &o.open, 0, 0, NULL},
        {"close", "NUMBERS", "their controls when it is closed", ARGS_TEXT, &o.close, 0, 0, NULL},
        {"tool", "X,Y,Z[,Q]", "tool frame in the base's frame, or in the profile's", ARGS_TEXT,
         &o.tool, 0, 0, NULL},
        import[0],
        import[1],
        import[2],
        {"out", "FILE.svg", "where to draw it (stdout)", ARGS_TEXT, &out, 0, 0, NULL},
        {"json", NULL, "one JSON object in place of text; draws with --out alone", ARGS_FLAG,
         &o.json, 0, 0, NULL},
        {"quiet", NULL, "no warnings", ARGS_FLAG, &o.quiet, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    o.hand = argv[1];

    grasp_task task;
    tb_hand *hand = NULL;
    tb_error error = {0};
    const char *const inputs[] = {o.hand}, *const outputs[] = {out};
    tb_status status = files_check_outputs(inputs, 1, outputs, 1, &error);
    if (status == TB_OK) status = make(&o, &task, &hand, &error);
    for (int32_t i = 0; status == TB_OK && !o.quiet && i < tb_hand_number_of_warnings(hand); i++)
        fprintf(stderr, "tribo: warning: %s\n", tb_hand_warning(hand, i));
    if (status == TB_OK && (out != NULL || !o.json)) status = draw(hand, o.hand, out, &error);
    if (status == TB_OK && o.json)
        print_json(hand, out);
    else if (status == TB_OK && out != NULL && !o.quiet)
        print_text(tb_hand_describe(hand));
    tb_hand_destroy(hand);
    grasp_task_close(&task);
    if (status == TB_OK) return CLI_OK;
    cli_complain(&error);
    return cli_exit_code(status);
}
