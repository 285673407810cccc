-- A store as version 1 left it: its schema, frozen, and rows of every table. test_db_upgrade.c
-- builds the file from this text and opens it with the store of today. Never change it.
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
BEGIN;

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
    counts BLOB NOT NULL,
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

INSERT INTO asset VALUES
    (1, x'0000000000000000000000000000000000000000000000000000000000000001', 'mug.obj', 4,
     1700000000000001, 3706173255, x'6d756721');
INSERT INTO scene VALUES
    (1, x'0101010101010101010101010101010101010101010101010101010101010101', 'jaw and mug',
     x'010000000200000003000000040000000500000006000000070000000800000009000000', 3,
     1700000000000002, 891568578, x'616263');
INSERT INTO session VALUES
    (1, x'00000000000000000000000000000001',
     x'0101010101010101010101010101010101010101010101010101010101010101', 'planner', 'open',
     2, 60.0, 1, x'0a0b', 1700000000000003, 1700000060000003, 0, 0, ''),
    (2, x'00000000000000000000000000000002',
     x'0101010101010101010101010101010101010101010101010101010101010101', 'planner', 'over',
     1, 60.0, 0, x'', 1700000000000004, 1700000060000004, 1, 1700000050000000, 'expired');
INSERT INTO snapshot VALUES
    (1, x'00000000000000000000000000000011', x'00000000000000000000000000000001',
     x'0101010101010101010101010101010101010101010101010101010101010101', 0, 'before the lift', 2,
     150, 0.75, 6, 1700000000000005, x'000102030405'),
    (2, x'00000000000000000000000000000012', x'00000000000000000000000000000001',
     x'0101010101010101010101010101010101010101010101010101010101010101', 1, '', 2, 160, 0.8, 0,
     1700000000000006, x''),
    (3, x'00000000000000000000000000000013', x'00000000000000000000000000000002',
     x'0101010101010101010101010101010101010101010101010101010101010101', 0, 'last', 1, 10, 0.05,
     5000, 1700000000000007, zeroblob(5000));
INSERT INTO run VALUES
    (1, x'00000000000000000000000000000001', 1, 1, 'planner', 'open',
     x'0101010101010101010101010101010101010101010101010101010101010101', '{"dt":0.005}', '0.1.0',
     'cpu', 1700000000000003, 0, 2, 320, 4500, 0, 0, '', 1, 160, 0.8, 1e-10, 2e-6, 0.0, 1e-12, NULL,
     1.5, -0.25, 4, 12, 33, 'sor', 0),
    (2, x'00000000000000000000000000000021', 2, 2, 'guest', 'grasps',
     x'0101010101010101010101010101010101010101010101010101010101010101', NULL, '0.1.0', 'cpu',
     1700000000000008, 1700000001000000, 64, 6400, 90000, 64, 60, '', 1, 100, 0.5, 1e-9, 1e-6, 0.0,
     0.0, 0.0, 0.0, 0.0, 8, 24, 900, 'newton', 1);
INSERT INTO step_summary VALUES
    (1, x'00000000000000000000000000000001', 160, 1700000000500000, 160, 1, 160, 0.8, 1e-10, 2e-6,
     0.0, 1e-12, 0.0, 1.5, -0.25, 4, 12, 33, 'sor', 0);
INSERT INTO event VALUES
    (1, x'00000000000000000000000000000001', 1700000000000003, 'created', 'by planner');
INSERT INTO testbed VALUES (1, 'a machine');
INSERT INTO build VALUES (1, '0.1.0 gcc');
INSERT INTO benchmark VALUES (1, 'jaw_mug.step');
INSERT INTO benchmark_run VALUES
    (1, x'00000000000000000000000000000031', 1, 1, 1, 'seconds', 's', 1700000000000009, 3, 2.0, 1.5,
     2.5, 1e-9, 12.0, 1e-6, 0.0);
INSERT INTO benchmark_sample VALUES (1, 0, 1.0), (1, 1, 3.0), (1, 2, 2.0);

PRAGMA application_id = 1414677060;
PRAGMA user_version = 1;
COMMIT;
