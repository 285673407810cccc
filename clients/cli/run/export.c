/* tribo export: the contact problem of one step, as a file for this and other people's solvers. */
#include <stdio.h>

#include "common/args.h"
#include "common/cli.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "simulation/simulation.h"

static const args_command COMMAND = {
    .name = "export",
    .operands = "MODEL",
    .description = "Steps a model and writes the contact problem that the step after it would "
                   "solve. Problem files\n"
                   "know Coulomb and frictionless contacts, and equalities are eliminated; a model "
                   "with other rows\n"
                   "(motors with force limits, dry friction in joints) is refused with the name of "
                   "the row's law.\n",
    .examples =
        "  tribo export pile.xml --steps 300 --problem pile.dat\n"
        "  tribo export grasp.xml --steps 500 --problem grasp.hdf5 && tribo solve grasp.hdf5\n",
    .minimum_operands = 1,
    .maximum_operands = 1};

int command_export(int argc, char **argv)
{
    simulation_options options = simulation_defaults();
    args_option shared[SIMULATION_OPTIONS];
    simulation_option_list(&options, shared);
    int64_t steps = 0;
    bool json = false;
    const char *problem = NULL;
    const args_option own[] = {
        {"steps", "N", "steps before it (0)", ARGS_INTEGER, &steps, 0, 2e9, NULL},
        {"problem", "FILE", "where to write it: .dat (text) or .hdf5 (FCLIB)", ARGS_TEXT, &problem,
         0, 0, NULL},
        {"json", NULL, "print one JSON object", ARGS_FLAG, &json, 0, 0, NULL},
        {"quiet", NULL, "print errors only", ARGS_FLAG, &options.quiet, 0, 0, NULL},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", own}, {"how it is stepped", shared}, {NULL, NULL}};

    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    if (!simulation_check_law(COMMAND.name, &options)) return CLI_USAGE;
    if (problem == NULL) {
        args_complain(COMMAND.name, "--problem FILE is missing");
        return CLI_USAGE;
    }
    options.path = argv[1];

    simulation s;
    tb_error error = {0};
    tb_problem_file *file = NULL;
    const char *const inputs[] = {options.path}, *const outputs[] = {problem};
    tb_status status = files_check_outputs(inputs, 1, outputs, 1, &error);
    if (status == TB_OK) status = simulation_open(&options, &s, &error);
    if (status != TB_OK) {
        cli_complain(&error);
        return cli_exit_code(status);
    }
    interrupt_watch();
    progress bar = progress_begin("stepping", (double)steps, options.quiet || json);
    status = simulation_run(&s, steps, NULL, NULL, NULL, &bar, &error);
    progress_end(&bar);
    if (status == TB_OK) status = tb_export_problem(s.stepper, s.worlds[0], problem, &error);

    /* reads the file back: the export fails if the problem is unreadable */
    if (status == TB_OK) status = tb_problem_load(problem, &file, &error);
    if (status == TB_OK && json) {
        const tb_problem_info info = tb_problem_describe(file);
        json_t *object = json_object();
        json_object_set_new(object, "path", json_text(problem));
        json_object_set_new(object, "contacts", json_integer(info.contacts));
        json_object_set_new(object, "rows", json_integer(info.rows));
        json_object_set_new(object, "steps", json_integer(s.steps));
        json_object_set_new(object, "dt", json_finite(s.dt));
        json_print(stdout, object);
    } else if (status == TB_OK && !options.quiet) {
        const tb_problem_info info = tb_problem_describe(file);
        printf("%s: %d contacts, %d rows, after %lld steps of %g s\n", problem, (int)info.contacts,
               (int)info.rows, (long long)s.steps, s.dt);
    }
    if (status != TB_OK) cli_complain(&error);
    tb_problem_destroy(file);
    simulation_close(&s);
    return cli_exit_code(status);
}
