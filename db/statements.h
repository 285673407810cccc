/* Every SQL statement of the store except the migrations, listed once: the list generates the enum,
 * the texts, and the test of each statement's query plan.
 *
 * Lists are ordered newest first by `number`, cut by "number < ?1" and one row longer than the
 * page; the extra row shows that another page exists. A unary plus hides a column from the planner
 * where another index gives the order. */
#ifndef DB_STATEMENTS_H
#define DB_STATEMENTS_H

/* fifteen columns, written by db_bind_certificate and read by db_column_certificate */
#define DB_CERTIFICATE                                                                             \
    "outcome, certificate_step, certificate_time, residual, penetration, cone_error, "             \
    "complementarity_error, closure_error, energy, energy_change, contacts, number_of_rows, "      \
    "iterations, solver, flags"
#define DB_SET_CERTIFICATE                                                                         \
    "outcome = excluded.outcome, certificate_step = excluded.certificate_step, "                   \
    "certificate_time = excluded.certificate_time, residual = excluded.residual, "                 \
    "penetration = excluded.penetration, cone_error = excluded.cone_error, "                       \
    "complementarity_error = excluded.complementarity_error, "                                     \
    "closure_error = excluded.closure_error, energy = excluded.energy, "                           \
    "energy_change = excluded.energy_change, contacts = excluded.contacts, "                       \
    "number_of_rows = excluded.number_of_rows, iterations = excluded.iterations, "                 \
    "solver = excluded.solver, flags = excluded.flags"

#define DB_SESSION                                                                                 \
    "id, scene, owner, label, worlds, ttl_seconds, on_disconnect, options, create_time_us, "       \
    "expire_time_us, ended"
#define DB_SNAPSHOT                                                                                \
    "number, id, session, scene, kind, label, worlds, steps, time, size, create_time_us, crc32"
#define DB_RUN                                                                                     \
    "number, id, kind, status, owner, label, scene, options_json, build, device, start_time_us, "  \
    "end_time_us, worlds, steps, compute_time_us, grasps, grasps_held, message, " DB_CERTIFICATE
#define DB_KEY                                                                                     \
    "id, name, hash, scope, calls_per_second, sessions, create_time_us, revoked, expire_time_us, " \
    "use_time_us"
/* Assets (kind 0) and scenes (kind 1) that nothing in the store needs: no open session, none that
 * ended after ?3, no snapshot, no grasp job with trajectories. */
#define DB_UNUSED                                                                                  \
    "(SELECT 0 AS kind, number, size, time_us FROM asset JOIN asset_use ON asset = number "        \
    "UNION ALL SELECT 1, number, size, time_us FROM scene c JOIN scene_use ON scene = number "     \
    "WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.scene = c.sha256 "                          \
    "AND (s.ended = 0 OR s.end_time_us > ?3)) "                                                    \
    "AND NOT EXISTS (SELECT 1 FROM snapshot p WHERE p.scene = c.sha256) "                          \
    "AND NOT EXISTS (SELECT 1 FROM grasp_job g WHERE g.scene = c.sha256))"
/* Of these, the ones beyond ?1 bytes, the latest used counted first, unused since ?3. */
#define DB_UNUSED_BEYOND(kind)                                                                     \
    "(SELECT number FROM (SELECT kind, number, time_us, sum(size) OVER (ORDER BY time_us DESC, "   \
    "kind, number) AS newer FROM " DB_UNUSED                                                       \
    ") WHERE newer > ?1 AND time_us < ?3 AND kind = " kind " ORDER BY time_us LIMIT ?2)"
#define DB_GRASP_JOB                                                                               \
    "number, id, owner, label, status, grasps, results, held, uncertified, result_bytes, "         \
    "create_time_us, end_time_us, message, trajectories, trajectory_bytes, "                       \
    "trajectories_left_out, scene"
#define DB_RUN_LIST(filter)                                                                        \
    "SELECT " DB_RUN " FROM run WHERE number < ?1" filter " ORDER BY number DESC LIMIT ?2"
#define DB_RUN_IS_OVER "NOT EXISTS (SELECT 1 FROM session o WHERE o.id = run.id AND o.ended = 0)"
#define DB_BENCHMARK                                                                               \
    "SELECT r.number, r.id, b.name, r.metric, r.unit, t.name, u.name, r.samples, r.median, "       \
    "r.lower_quartile, r.upper_quartile, r.residual, r.iterations, r.penetration, "                \
    "r.energy_drift, r.time_us FROM benchmark_run r JOIN benchmark b ON b.number = r.benchmark "   \
    "JOIN testbed t ON t.number = r.testbed JOIN build u ON u.number = r.build "

/* A snapshot that is older than another of its session is of no use unless a client asked for it;
 * kind 1 is DB_SNAPSHOT_CHECKPOINT. */

#define DB_STATEMENT_LIST(X)                                                                          \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                       \
    X(COMMIT, "COMMIT")                                                                               \
    X(SAVEPOINT, "SAVEPOINT job")                                                                     \
    X(RELEASE, "RELEASE job")                                                                         \
    X(UNDO, "ROLLBACK TO job")                                                                        \
    X(PAGE_COUNT, "PRAGMA page_count")                                                                \
    /* assets and scenes */                                                                           \
    X(ASSET_PUT, "INSERT INTO asset (sha256, name, size, create_time_us, crc32, bytes) "              \
                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (sha256) DO NOTHING")                   \
    X(ASSET_USE, "INSERT INTO asset_use (asset, time_us) SELECT number, ?2 FROM asset "               \
                 "WHERE sha256 = ?1 ON CONFLICT (asset) DO UPDATE SET time_us = "                     \
                 "max(time_us, excluded.time_us)")                                                    \
    X(ASSET_GET, "SELECT number, sha256, name, size, create_time_us, crc32 FROM asset "               \
                 "WHERE sha256 = ?1")                                                                 \
    X(ASSET_LIST, "SELECT number, sha256, name, size, create_time_us FROM asset "                     \
                  "WHERE number < ?1 ORDER BY number DESC LIMIT ?2")                                  \
    X(SCENE_PUT, "INSERT INTO scene (sha256, name, counts, size, create_time_us, crc32, bytes) "      \
                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (sha256) DO NOTHING")               \
    X(SCENE_USE, "INSERT INTO scene_use (scene, time_us) SELECT number, ?2 FROM scene "               \
                 "WHERE sha256 = ?1 ON CONFLICT (scene) DO UPDATE SET time_us = "                     \
                 "max(time_us, excluded.time_us)")                                                    \
    X(SCENE_GET, "SELECT number, sha256, name, counts, size, create_time_us, crc32 FROM scene "       \
                 "WHERE sha256 = ?1")                                                                 \
    X(SCENE_BETWEEN, "SELECT sha256 FROM scene WHERE sha256 BETWEEN ?1 AND ?2 LIMIT 2")               \
    X(SCENE_LIST, "SELECT number, sha256, name, counts, size, create_time_us FROM scene "             \
                  "WHERE number < ?1 ORDER BY number DESC LIMIT ?2")                                  \
    /* sessions: an end is final */                                                                   \
    X(SESSION_PUT,                                                                                    \
      "INSERT INTO session (" DB_SESSION ", end_time_us, end_reason) "                                \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, '') "                               \
      "ON CONFLICT (id) DO UPDATE SET label = excluded.label, worlds = excluded.worlds, "             \
      "ttl_seconds = excluded.ttl_seconds, on_disconnect = excluded.on_disconnect, "                  \
      "options = excluded.options, expire_time_us = excluded.expire_time_us")                         \
    X(SESSION_END, "UPDATE session SET ended = 1, end_time_us = ?2, end_reason = ?3 "                 \
                   "WHERE id = ?1 AND ended = 0")                                                     \
    X(SESSION_EXISTS, "SELECT 1 FROM session WHERE id = ?1")                                          \
    X(SESSION_OPEN, "SELECT " DB_SESSION " FROM session WHERE ended = 0 ORDER BY number")             \
    X(SESSION_SNAPSHOTS_TRANSIENT,                                                                    \
      "UPDATE snapshot SET transient = 1 WHERE session = ?1 AND transient = 0")                       \
    /* snapshots */                                                                                   \
    X(SNAPSHOT_PUT,                                                                                   \
      "INSERT INTO snapshot (id, session, scene, kind, label, worlds, steps, time, size, "            \
      "create_time_us, crc32, transient) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "      \
      "(SELECT ended FROM session WHERE id = ?2))")                                                   \
    X(SNAPSHOT_PUT_BYTES, "INSERT INTO snapshot_bytes (snapshot, bytes) VALUES (?1, ?2)")             \
    X(SNAPSHOT_DROP_CHECKPOINTS,                                                                      \
      "DELETE FROM snapshot WHERE session = ?1 AND +kind = 1 AND number < ?2")                        \
    /* the oldest beyond ?2 in number or ?3 in bytes, the newest aside */                             \
    X(SNAPSHOT_DROP_BEYOND,                                                                           \
      "DELETE FROM snapshot WHERE number IN (SELECT number FROM (SELECT number, "                     \
      "count(*) OVER newer AS n, sum(size) OVER newer AS bytes FROM snapshot WHERE session = ?1 "     \
      "WINDOW newer AS (ORDER BY number DESC)) WHERE n > 1 AND (n > ?2 OR bytes > ?3))")              \
    X(SNAPSHOT_GET, "SELECT " DB_SNAPSHOT " FROM snapshot WHERE id = ?1")                             \
    X(SNAPSHOT_LATEST, "SELECT " DB_SNAPSHOT " FROM snapshot WHERE session = ?1 "                     \
                       "ORDER BY number DESC LIMIT 1")                                                \
    /* runs: caller, kind and time of start are written once */                                       \
    X(RUN_PUT,                                                                                        \
      "INSERT INTO run (id, kind, status, owner, label, scene, options_json, build, device, "         \
      "start_time_us, end_time_us, worlds, steps, compute_time_us, grasps, grasps_held, "             \
      "message, " DB_CERTIFICATE                                                                      \
      ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "                       \
      "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32) "    \
      "ON CONFLICT (id) DO UPDATE SET status = excluded.status, label = excluded.label, "             \
      "options_json = coalesce(excluded.options_json, options_json), build = excluded.build, "        \
      "device = excluded.device, end_time_us = excluded.end_time_us, worlds = excluded.worlds, "      \
      "steps = excluded.steps, compute_time_us = excluded.compute_time_us, "                          \
      "grasps = excluded.grasps, grasps_held = excluded.grasps_held, "                                \
      "message = excluded.message, " DB_SET_CERTIFICATE)                                              \
    X(RUN_GET, "SELECT " DB_RUN " FROM run WHERE id = ?1")                                            \
    X(RUN_BETWEEN, "SELECT id FROM run WHERE id BETWEEN ?1 AND ?2 LIMIT 2")                           \
    X(RUN_LIST, DB_RUN_LIST(""))                                                                      \
    X(RUN_LIST_KIND, DB_RUN_LIST(" AND kind = ?3"))                                                   \
    X(RUN_LIST_SCENE, DB_RUN_LIST(" AND scene = ?4"))                                                 \
    X(RUN_LIST_SCENE_KIND, DB_RUN_LIST(" AND +kind = ?3 AND scene = ?4"))                             \
    X(RUN_LIST_OWNER, DB_RUN_LIST(" AND owner = ?5"))                                                 \
    X(RUN_LIST_OWNER_KIND, DB_RUN_LIST(" AND kind = ?3 AND owner = ?5"))                              \
    X(RUN_LIST_OWNER_SCENE, DB_RUN_LIST(" AND scene = ?4 AND owner = ?5"))                            \
    X(RUN_LIST_OWNER_SCENE_KIND, DB_RUN_LIST(" AND +kind = ?3 AND scene = ?4 AND owner = ?5"))        \
    /* runs that the last process left RUNNING (1) become INTERRUPTED (5), but for the runs of      \
     * open sessions, which continue and have their ids */ \
    X(RUN_NOTE_INTERRUPTED,                                                                           \
      "INSERT INTO event (run, time_us, kind, message) SELECT id, ?1, 'interrupted', "                \
      "'the server ended before the run did' FROM run WHERE status = 1 AND " DB_RUN_IS_OVER)          \
    X(RUN_INTERRUPT,                                                                                  \
      "UPDATE run SET status = 5, end_time_us = max(start_time_us, "                                  \
      "coalesce((SELECT time_us FROM step_summary s WHERE s.run = run.id "                            \
      "ORDER BY s.number DESC LIMIT 1), 0), "                                                         \
      "coalesce((SELECT time_us FROM event e WHERE e.run = run.id AND e.kind <> 'interrupted' "       \
      "ORDER BY e.number DESC LIMIT 1), 0)) WHERE status = 1 AND " DB_RUN_IS_OVER)                    \
    X(STEP_SUMMARY_PUT,                                                                               \
      "INSERT INTO step_summary (run, step, time_us, steps, " DB_CERTIFICATE ") "                     \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "     \
      "?19)")                                                                                         \
    X(STEP_SUMMARY_LIST, "SELECT run, step, time_us, steps, " DB_CERTIFICATE " FROM step_summary "    \
                         "WHERE run = ?1 ORDER BY number DESC LIMIT ?2")                              \
    X(EVENT_PUT, "INSERT INTO event (run, time_us, kind, message) VALUES (?1, ?2, ?3, ?4)")           \
    X(EVENT_LIST, "SELECT run, time_us, kind, message FROM event WHERE run = ?1 "                     \
                  "ORDER BY number DESC LIMIT ?2")                                                    \
    /* benchmarks */                                                                                  \
    X(BENCHMARK_PUT_NAME, "INSERT INTO benchmark (name) VALUES (?1) ON CONFLICT DO NOTHING")          \
    X(BENCHMARK_PUT_TESTBED, "INSERT INTO testbed (name) VALUES (?1) ON CONFLICT DO NOTHING")         \
    X(BENCHMARK_PUT_BUILD, "INSERT INTO build (name) VALUES (?1) ON CONFLICT DO NOTHING")             \
    X(BENCHMARK_PUT,                                                                                  \
      "INSERT INTO benchmark_run (id, benchmark, testbed, build, metric, unit, time_us, samples, "    \
      "median, lower_quartile, upper_quartile, residual, iterations, penetration, energy_drift) "     \
      "VALUES (?1, (SELECT number FROM benchmark WHERE name = ?2), "                                  \
      "(SELECT number FROM testbed WHERE name = ?3), (SELECT number FROM build WHERE name = ?4), "    \
      "?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)")                                            \
    X(BENCHMARK_PUT_SAMPLE,                                                                           \
      "INSERT INTO benchmark_sample (benchmark_run, position, value) VALUES (?1, ?2, ?3)")            \
    X(BENCHMARK_LIST, DB_BENCHMARK "WHERE r.number < ?1 ORDER BY r.number DESC LIMIT ?2")             \
    X(BENCHMARK_LIST_NAME,                                                                            \
      DB_BENCHMARK "WHERE r.benchmark = (SELECT number FROM benchmark WHERE name = ?3) "              \
                   "AND r.number < ?1 ORDER BY r.number DESC LIMIT ?2")                               \
    X(BENCHMARK_GET, DB_BENCHMARK "WHERE r.id = ?1")                                                  \
    X(BENCHMARK_SAMPLES_OF, "SELECT value FROM benchmark_sample WHERE benchmark_run = ?1 "            \
                            "ORDER BY position")                                                      \
    /* keys */                                                                                        \
    X(KEY_PUT,                                                                                        \
      "INSERT INTO api_key (id, name, hash, scope, calls_per_second, sessions, create_time_us, "      \
      "revoked, expire_time_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "                         \
      "ON CONFLICT (id) DO UPDATE SET "                                                               \
      "name = excluded.name, hash = excluded.hash, scope = excluded.scope, "                          \
      "calls_per_second = excluded.calls_per_second, sessions = excluded.sessions, "                  \
      "revoked = excluded.revoked, expire_time_us = excluded.expire_time_us")                         \
    X(KEY_GET, "SELECT " DB_KEY " FROM api_key WHERE id = ?1")                                        \
    X(KEY_USE, "UPDATE api_key SET use_time_us = max(use_time_us, ?2) WHERE id = ?1")                 \
    X(KEY_REFUSAL_PUT,                                                                                \
      "INSERT INTO key_refusal (key, peer, reason, refusals, first_time_us, last_time_us) "           \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (key, peer, reason) DO UPDATE SET "                \
      "refusals = refusals + excluded.refusals, last_time_us = excluded.last_time_us")                \
    X(KEY_REFUSAL_LIST, "SELECT key, peer, reason, refusals, first_time_us, last_time_us "            \
                        "FROM key_refusal ORDER BY last_time_us DESC LIMIT ?1")                       \
    X(KEY_MARK, "SELECT count(*) * 1000003 + coalesce(sum(revoked), 0) FROM api_key")                 \
    X(KEY_LIST, "SELECT " DB_KEY " FROM api_key ORDER BY id LIMIT ?1")                                \
    /* grasp jobs: an end is final */                                                                 \
    X(GRASP_JOB_PUT, "INSERT INTO grasp_job (id, owner, label, status, grasps, create_time_us, "      \
                     "request, scene) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                       \
    X(GRASP_JOB_END, "UPDATE grasp_job SET status = ?2, end_time_us = ?3, message = ?4 "              \
                     "WHERE id = ?1 AND status = 1")                                                  \
    X(GRASP_JOB_COUNT, "UPDATE grasp_job SET results = results + 1, held = held + ?2, "               \
                       "uncertified = uncertified + ?3, result_bytes = result_bytes + ?4, "           \
                       "trajectories = trajectories + ?5, "                                           \
                       "trajectory_bytes = trajectory_bytes + ?6, "                                   \
                       "trajectories_left_out = trajectories_left_out + ?7 "                          \
                       "WHERE id = ?1")                                                               \
    X(GRASP_RESULT_PUT, "INSERT INTO grasp_result (job, pose, bytes) SELECT number, ?2, ?3 "          \
                        "FROM grasp_job WHERE id = ?1 ON CONFLICT (job, pose) DO NOTHING")            \
    X(GRASP_JOB_GET, "SELECT " DB_GRASP_JOB " FROM grasp_job WHERE id = ?1")                          \
    X(GRASP_JOB_REQUEST, "SELECT request FROM grasp_job WHERE id = ?1")                               \
    X(GRASP_JOB_BETWEEN, "SELECT id FROM grasp_job WHERE id BETWEEN ?1 AND ?2 LIMIT 2")               \
    X(GRASP_JOB_OPEN, "SELECT " DB_GRASP_JOB " FROM grasp_job WHERE status = 1 AND number > ?1 "      \
                      "ORDER BY number LIMIT 1")                                                      \
    X(GRASP_JOB_LIST, "SELECT " DB_GRASP_JOB " FROM grasp_job WHERE number < ?1 "                     \
                      "ORDER BY number DESC LIMIT ?2")                                                \
    X(GRASP_JOB_LIST_OWNER, "SELECT " DB_GRASP_JOB " FROM grasp_job WHERE number < ?1 "               \
                            "AND owner = ?3 ORDER BY number DESC LIMIT ?2")                           \
    X(GRASP_RESULT_LIST, "SELECT pose, bytes FROM grasp_result WHERE job = (SELECT number FROM "      \
                         "grasp_job WHERE id = ?1) AND pose >= ?2 ORDER BY pose LIMIT ?3")            \
    X(GRASP_TRAJECTORY_PUT, "INSERT INTO grasp_trajectory (job, pose, copy, size, crc32, bytes) "     \
                            "SELECT number, ?2, ?3, ?4, ?5, ?6 FROM grasp_job WHERE id = ?1")         \
    X(GRASP_TRAJECTORY_GET,                                                                           \
      "SELECT number, size, crc32 FROM grasp_trajectory WHERE job = (SELECT "                         \
      "number FROM grasp_job WHERE id = ?1) AND pose = ?2 AND copy = ?3")                             \
    X(GRASP_TRAJECTORY_LIST, "SELECT pose, copy, size FROM grasp_trajectory WHERE job = (SELECT "     \
                             "number FROM grasp_job WHERE id = ?1) AND (pose, copy) > (?2, ?3) "      \
                             "ORDER BY pose, copy LIMIT ?4")                                          \
    /* recordings of runs; a replaced one counts as new */                                            \
    X(RECORDING_PUT, "INSERT OR REPLACE INTO recording (run, size, crc32, bytes) "                    \
                     "VALUES (?1, ?2, ?3, ?4)")                                                       \
    X(RECORDING_GET, "SELECT number, size, crc32 FROM recording WHERE run = ?1")                      \
    /* outbox: an entry's row is noted by the triggers of schema/0006_outbox.sql */                   \
    X(OUTBOX_OPEN, "INSERT INTO outbox_state (one, sequence, target) VALUES (1, ?1, '') "             \
                   "ON CONFLICT (one) DO UPDATE SET sequence = max(sequence, excluded.sequence)")     \
    X(OUTBOX_RETRY, "UPDATE outbox SET refused = NULL WHERE refused IS NOT NULL")                     \
    X(OUTBOX_CLOSE, "DELETE FROM outbox_state")                                                       \
    X(OUTBOX_CLEAR, "DELETE FROM outbox")                                                             \
    X(OUTBOX_AIM, "UPDATE outbox_state SET target = ?1 WHERE target <> ?1")                           \
    X(OUTBOX_FILL_RUNS, "INSERT INTO outbox (sequence, kind, id, time_us) SELECT (SELECT "            \
                        "sequence FROM outbox_state) "                                                \
                        "+ row_number() OVER (ORDER BY number), 1, id, ?1 FROM run")                  \
    X(OUTBOX_FILL_BENCHMARKS,                                                                         \
      "INSERT INTO outbox (sequence, kind, id, time_us) SELECT (SELECT sequence FROM "                \
      "outbox_state) "                                                                                \
      "+ row_number() OVER (ORDER BY number), 2, id, ?1 FROM benchmark_run")                          \
    X(OUTBOX_COUNT_ON, "UPDATE outbox_state SET sequence = max(sequence, "                            \
                       "coalesce((SELECT max(sequence) FROM outbox), 0))")                            \
    X(OUTBOX_LIST, "SELECT sequence, kind, id FROM outbox WHERE refused IS NULL "                     \
                   "ORDER BY sequence LIMIT ?1")                                                      \
    X(OUTBOX_DELETE, "DELETE FROM outbox WHERE sequence = ?1")                                        \
    X(OUTBOX_REFUSE, "UPDATE outbox SET refused = ?2 WHERE sequence = ?1")                            \
    X(OUTBOX_MEASURE, "SELECT count(*) FILTER (WHERE refused IS NULL), count(refused), "              \
                      "coalesce(min(time_us) FILTER (WHERE refused IS NULL), 0) FROM outbox")         \
    /* retention, a slice at a time */                                                                \
    /* runs that wait to be sent to a fleet stay */                                                   \
    X(RETAIN_RUNS, "DELETE FROM run WHERE number IN (SELECT number FROM run "                         \
                   "WHERE end_time_us > 0 AND end_time_us < ?1 AND status <> 1 "                      \
                   "AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.kind = 1 AND o.id = run.id "       \
                   "AND o.refused IS NULL) LIMIT ?2)")                                                \
    X(RETAIN_GRASP_JOBS, "DELETE FROM grasp_job WHERE number IN (SELECT number FROM grasp_job "       \
                         "WHERE status <> 1 AND end_time_us < ?1 LIMIT ?2)")                          \
    X(RETAIN_GRASP_JOBS_SIZE,                                                                         \
      "DELETE FROM grasp_job WHERE number IN (SELECT number FROM (SELECT number, "                    \
      "sum(result_bytes) OVER (ORDER BY number DESC) AS newer FROM grasp_job "                        \
      "INDEXED BY grasp_job_size WHERE status <> 1) "                                                 \
      "WHERE newer > ?1 ORDER BY number LIMIT ?2)")                                                   \
    X(RETAIN_RECORDINGS,                                                                              \
      "DELETE FROM recording WHERE number IN (SELECT number FROM (SELECT number, "                    \
      "sum(size) OVER (ORDER BY number DESC) AS newer FROM recording INDEXED BY recording_size) "     \
      "WHERE newer > ?1 ORDER BY number LIMIT ?2)")                                                   \
    X(RETAIN_GRASP_TRAJECTORIES,                                                                      \
      "DELETE FROM grasp_trajectory WHERE number IN (SELECT number FROM (SELECT number, "             \
      "sum(size) OVER (ORDER BY number DESC) AS newer FROM grasp_trajectory "                         \
      "INDEXED BY grasp_trajectory_size) WHERE newer > ?1 ORDER BY number LIMIT ?2)")                 \
    X(RETAIN_SUMMARIES, "DELETE FROM step_summary WHERE number IN (SELECT number FROM "               \
                        "step_summary WHERE number > 0 ORDER BY number LIMIT ?2) "                    \
                        "AND time_us < ?1")                                                           \
    X(RETAIN_EVENTS, "DELETE FROM event WHERE number IN (SELECT number FROM event "                   \
                     "WHERE number > 0 ORDER BY number LIMIT ?2) AND time_us < ?1")                   \
    X(RETAIN_SESSIONS, "DELETE FROM session WHERE number IN (SELECT number FROM session "             \
                       "WHERE ended = 1 AND end_time_us < ?1 LIMIT ?2)")                              \
    X(RETAIN_REFUSALS, "DELETE FROM key_refusal WHERE (key, peer, reason) IN (SELECT key, peer, "     \
                       "reason FROM key_refusal WHERE last_time_us < ?1 LIMIT ?2)")                   \
    X(RETAIN_REFUSALS_NUMBER,                                                                         \
      "DELETE FROM key_refusal WHERE (key, peer, reason) IN (SELECT key, peer, reason "               \
      "FROM key_refusal ORDER BY last_time_us DESC LIMIT ?2 OFFSET ?1)")                              \
    X(RETAIN_ASSETS, "DELETE FROM asset WHERE number IN (SELECT asset FROM asset_use "                \
                     "WHERE time_us < ?1 LIMIT ?2)")                                                  \
    X(RETAIN_SCENES, "DELETE FROM scene WHERE number IN (SELECT number FROM scene_use "               \
                     "JOIN scene c ON number = scene WHERE time_us < ?1 "                             \
                     "AND NOT EXISTS (SELECT 1 FROM session s WHERE s.scene = c.sha256) "             \
                     "AND NOT EXISTS (SELECT 1 FROM snapshot p WHERE p.scene = c.sha256) "            \
                     "AND NOT EXISTS (SELECT 1 FROM grasp_job g WHERE g.scene = c.sha256) "           \
                     "AND NOT EXISTS (SELECT 1 FROM run r WHERE r.scene = c.sha256) LIMIT ?2)")       \
    X(RETAIN_UNUSED_ASSETS, "DELETE FROM asset WHERE number IN " DB_UNUSED_BEYOND("0"))               \
    X(RETAIN_UNUSED_SESSIONS, "DELETE FROM session WHERE ended = 1 AND scene IN (SELECT sha256 "      \
                              "FROM scene WHERE number IN " DB_UNUSED_BEYOND("1") ")")                \
    X(RETAIN_UNUSED_SCENES, "DELETE FROM scene WHERE number IN " DB_UNUSED_BEYOND("1"))               \
    X(RETAIN_SNAPSHOTS_SIZE, "SELECT sum(size) FROM snapshot WHERE transient = 1")                    \
    X(RETAIN_SNAPSHOTS,                                                                               \
      "DELETE FROM snapshot WHERE number IN (SELECT number FROM (SELECT number, "                     \
      "sum(size) OVER (ORDER BY number DESC) AS newer FROM snapshot WHERE transient = 1) "            \
      "WHERE newer > ?1 ORDER BY number LIMIT ?2)")

typedef enum db_statement {
#define DB_STATEMENT_ENUM(name, text) DB_##name,
    DB_STATEMENT_LIST(DB_STATEMENT_ENUM)
#undef DB_STATEMENT_ENUM
        DB_STATEMENTS
} db_statement;

/* The text of a statement. */
const char *db_statement_text(db_statement);

#endif
