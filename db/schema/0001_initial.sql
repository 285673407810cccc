-- Version 1: assets, scenes, sessions with their snapshots, runs with their history, benchmarks.
--
-- `number` counts rows in the order of insertion; pages are cut by it, newest first. `id` is the
-- public name. Times are microseconds since 1970-01-01 UTC, 0 where there is none yet. REAL columns
-- that may be NULL hold NULL for not-a-number.

CREATE TABLE asset (
    number INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32),
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    create_time_us INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE scene (
    number INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32),
    name TEXT NOT NULL,
    counts BLOB NOT NULL, -- nine little-endian 32-bit integers
    size INTEGER NOT NULL,
    create_time_us INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE session (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    scene BLOB NOT NULL REFERENCES scene (sha256),
    owner TEXT NOT NULL,
    label TEXT NOT NULL,
    worlds INTEGER NOT NULL,
    ttl_seconds REAL NOT NULL,
    on_disconnect INTEGER NOT NULL,
    options BLOB NOT NULL,
    create_time_us INTEGER NOT NULL,
    expire_time_us INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    end_time_us INTEGER NOT NULL,
    end_reason TEXT NOT NULL
) STRICT;

CREATE INDEX session_open ON session (number) WHERE ended = 0;
CREATE INDEX session_ended ON session (end_time_us) WHERE ended = 1;
CREATE INDEX session_scene ON session (scene);

CREATE TABLE snapshot (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    session BLOB NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    scene BLOB NOT NULL,
    kind INTEGER NOT NULL,
    label TEXT NOT NULL,
    worlds INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    time REAL,
    size INTEGER NOT NULL,
    create_time_us INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE INDEX snapshot_session ON snapshot (session);

CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    kind INTEGER NOT NULL,
    status INTEGER NOT NULL,
    owner TEXT NOT NULL,
    label TEXT NOT NULL,
    scene BLOB NOT NULL,
    options_json TEXT,
    build TEXT NOT NULL,
    device TEXT NOT NULL,
    start_time_us INTEGER NOT NULL,
    end_time_us INTEGER NOT NULL,
    worlds INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    compute_time_us INTEGER NOT NULL,
    grasps INTEGER NOT NULL,
    grasps_held INTEGER NOT NULL,
    message TEXT NOT NULL,
    outcome INTEGER NOT NULL,
    certificate_step INTEGER NOT NULL,
    certificate_time REAL,
    residual REAL,
    penetration REAL,
    cone_error REAL,
    complementarity_error REAL,
    closure_error REAL,
    energy REAL,
    energy_change REAL,
    contacts INTEGER NOT NULL,
    number_of_rows INTEGER NOT NULL,
    iterations INTEGER NOT NULL,
    solver TEXT NOT NULL,
    flags INTEGER NOT NULL
) STRICT;

-- each ends in the row's number, so that pages of every filter come in order
CREATE INDEX run_owner ON run (owner);
CREATE INDEX run_owner_kind ON run (owner, kind);
CREATE INDEX run_owner_scene ON run (owner, scene);
CREATE INDEX run_kind ON run (kind);
CREATE INDEX run_scene ON run (scene);
CREATE INDEX run_running ON run (number) WHERE status = 1;
CREATE INDEX run_ended ON run (end_time_us) WHERE end_time_us > 0;

CREATE TABLE step_summary (
    number INTEGER PRIMARY KEY,
    run BLOB NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    step INTEGER NOT NULL,
    time_us INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    certificate_step INTEGER NOT NULL,
    certificate_time REAL,
    residual REAL,
    penetration REAL,
    cone_error REAL,
    complementarity_error REAL,
    closure_error REAL,
    energy REAL,
    energy_change REAL,
    contacts INTEGER NOT NULL,
    number_of_rows INTEGER NOT NULL,
    iterations INTEGER NOT NULL,
    solver TEXT NOT NULL,
    flags INTEGER NOT NULL
) STRICT;

CREATE INDEX step_summary_run ON step_summary (run);

CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    run BLOB NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    time_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL
) STRICT;

CREATE INDEX event_run ON event (run);

CREATE TABLE testbed (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE build (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE benchmark (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE benchmark_run (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    benchmark INTEGER NOT NULL REFERENCES benchmark (number),
    testbed INTEGER NOT NULL REFERENCES testbed (number),
    build INTEGER NOT NULL REFERENCES build (number),
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    median REAL,
    lower_quartile REAL,
    upper_quartile REAL,
    residual REAL,
    iterations REAL,
    penetration REAL,
    energy_drift REAL
) STRICT;

CREATE INDEX benchmark_run_benchmark ON benchmark_run (benchmark);

CREATE TABLE benchmark_sample (
    benchmark_run INTEGER NOT NULL REFERENCES benchmark_run (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    value REAL,
    PRIMARY KEY (benchmark_run, position)
) STRICT, WITHOUT ROWID;
