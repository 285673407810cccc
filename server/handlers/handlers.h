/* The methods that the daemon serves, listed once. methods.c generates the method table from the
 * list; each handler is a function td_SERVICE_METHOD in the file named in the list's comments. */
#ifndef SERVER_HANDLERS_H
#define SERVER_HANDLERS_H

#include "call/call.h"

/* Service, service in C, method, method in C, scope; one request, one response */
#define TD_UNARY_LIST(X)                                                                           \
    /* simulation_info.c, simulation_assets.c, simulation_scenes.c */                              \
    X(Simulation, simulation, GetServerInfo, get_server_info, NONE)                                \
    X(Simulation, simulation, GetLog, get_log, ADMIN)                                              \
    X(Simulation, simulation, CreateAsset, create_asset, RUN)                                      \
    X(Simulation, simulation, ListAssets, list_assets, READ)                                       \
    X(Simulation, simulation, GetAsset, get_asset, READ)                                           \
    X(Simulation, simulation, CreateScene, create_scene, RUN)                                      \
    X(Simulation, simulation, GetScene, get_scene, READ)                                           \
    X(Simulation, simulation, ListScenes, list_scenes, READ)                                       \
    /* simulation_sessions.c */                                                                    \
    X(Simulation, simulation, CreateSession, create_session, RUN)                                  \
    X(Simulation, simulation, ListSessions, list_sessions, READ)                                   \
    X(Simulation, simulation, Heartbeat, heartbeat, RUN)                                           \
    X(Simulation, simulation, DeleteSession, delete_session, RUN)                                  \
    X(Simulation, simulation, GetState, get_state, READ)                                           \
    X(Simulation, simulation, SetState, set_state, RUN)                                            \
    X(Simulation, simulation, Reset, reset, RUN)                                                   \
    X(Simulation, simulation, GetContacts, get_contacts, READ)                                     \
    X(Simulation, simulation, SetParameters, set_parameters, RUN)                                  \
    X(Simulation, simulation, GetParameters, get_parameters, READ)                                 \
    X(Simulation, simulation, Snapshot, snapshot, RUN)                                             \
    X(Simulation, simulation, Restore, restore, RUN)                                               \
    X(Simulation, simulation, Fork, fork, RUN)                                                     \
    X(Simulation, simulation, ExportProblem, export_problem, READ)                                 \
    /* simulation_step.c */                                                                        \
    X(Simulation, simulation, Step, step, RUN)                                                     \
    /* solve_problem.c */                                                                          \
    X(Solve, solve, SolveProblem, solve_problem, RUN)                                              \
    /* grasp_jobs.c, grasp_job_rows.c */                                                           \
    X(Grasp, grasp, SubmitGrasps, submit_grasps, RUN)                                              \
    X(Grasp, grasp, GetGraspJob, get_grasp_job, READ)                                              \
    X(Grasp, grasp, ListGraspJobs, list_grasp_jobs, READ)                                          \
    X(Grasp, grasp, CancelGraspJob, cancel_grasp_job, RUN)                                         \
    X(Grasp, grasp, ReplayGrasp, replay_grasp, RUN)                                                \
    X(Grasp, grasp, GetGraspTrajectory, get_grasp_trajectory, READ)                                \
    X(Grasp, grasp, ListGraspTrajectories, list_grasp_trajectories, READ)                          \
    /* functions.c */                                                                              \
    X(Function, function, Compile, compile, RUN)                                                   \
    X(Function, function, List, list, READ)                                                        \
    X(Function, function, Forget, forget, RUN)                                                     \
    /* runs.c */                                                                                   \
    X(Runs, runs, ListRuns, list_runs, READ)                                                       \
    X(Runs, runs, GetRun, get_run, READ)                                                           \
    X(Runs, runs, CompareRuns, compare_runs, READ)                                                 \
    X(Runs, runs, RecordBenchmark, record_benchmark, RUN)                                          \
    X(Runs, runs, ListBenchmarks, list_benchmarks, READ)                                           \
    /* runs_recording.c */                                                                         \
    X(Runs, runs, GetRecording, get_recording, READ)

/* the same, then: request stream, response stream. Beside td_SERVICE_METHOD these have
 * ..._half_closed, ..._writable and ..._cancelled. */
#define TD_STREAM_LIST(X)                                                                          \
    X(Simulation, simulation, PutAsset, put_asset, RUN, true, false)                               \
    X(Simulation, simulation, StepStream, step_stream, RUN, true, true)                            \
    X(Simulation, simulation, Watch, watch, READ, false, true)                                     \
    X(Grasp, grasp, EvaluateGrasps, evaluate_grasps, RUN, false, true)                             \
    X(Function, function, Call, call, RUN, false, true)                                            \
    X(Function, function, Fetch, fetch, READ, false, true)

#define TD_DECLARE_UNARY(Service, service, Method, method, scope)                                  \
    void td_##service##_##method(td_call *, td_request *);
TD_UNARY_LIST(TD_DECLARE_UNARY)
#undef TD_DECLARE_UNARY

#define TD_DECLARE_STREAM(Service, service, Method, method, scope, client, server)                 \
    void td_##service##_##method(td_call *, td_request *);                                         \
    void td_##service##_##method##_half_closed(td_call *);                                         \
    void td_##service##_##method##_writable(td_call *);                                            \
    void td_##service##_##method##_cancelled(td_call *);
TD_STREAM_LIST(TD_DECLARE_STREAM)
#undef TD_DECLARE_STREAM

/* Finds "/tribo.v1.Simulation/Step" (leading slash optional); NULL if there is none. */
const td_method *td_method_find(const char *path);
/* All methods, ended by one with a NULL name: for reflection and the transcoder. */
const td_method *td_methods(void);

#endif
