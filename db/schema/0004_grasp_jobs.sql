-- Version 4: grasp jobs that outlive their client and the process: the request, and every result as it
-- comes. A job without an end is resumed at its first pose without a result.

CREATE TABLE grasp_job (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    owner TEXT NOT NULL,
    label TEXT NOT NULL,
    status INTEGER NOT NULL, -- 1 running, 2 done, 3 cancelled, 4 failed
    grasps INTEGER NOT NULL,
    results INTEGER NOT NULL DEFAULT 0, -- rows of grasp_result; poses come in their order
    held INTEGER NOT NULL DEFAULT 0,
    uncertified INTEGER NOT NULL DEFAULT 0, -- trials
    result_bytes INTEGER NOT NULL DEFAULT 0,
    create_time_us INTEGER NOT NULL,
    end_time_us INTEGER NOT NULL DEFAULT 0,
    message TEXT NOT NULL DEFAULT '',
    request BLOB NOT NULL -- EvaluateGraspsRequest
) STRICT;

CREATE INDEX grasp_job_open ON grasp_job (number) WHERE status = 1;
CREATE INDEX grasp_job_owner ON grasp_job (owner, number);
-- the sizes alone, for retention
CREATE INDEX grasp_job_size ON grasp_job (number, result_bytes) WHERE status <> 1;
CREATE INDEX grasp_job_end ON grasp_job (end_time_us) WHERE status <> 1;

CREATE TABLE grasp_result (
    job INTEGER NOT NULL REFERENCES grasp_job (number) ON DELETE CASCADE,
    pose INTEGER NOT NULL,
    bytes BLOB NOT NULL, -- GraspResult
    PRIMARY KEY (job, pose)
) STRICT, WITHOUT ROWID;
