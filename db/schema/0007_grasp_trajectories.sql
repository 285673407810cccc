-- Version 7: trajectories of chosen trials of grasp jobs, one each, as messages of the wire.

CREATE TABLE grasp_trajectory (
    number INTEGER PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES grasp_job (number) ON DELETE CASCADE,
    pose INTEGER NOT NULL,
    copy INTEGER NOT NULL, -- 0: not perturbed
    size INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    bytes BLOB NOT NULL, -- GraspTrajectory
    UNIQUE (job, pose, copy)
) STRICT;

-- the sizes alone, for retention
CREATE INDEX grasp_trajectory_size ON grasp_trajectory (number, size);

-- trajectories of a job that were written, with those that retention has deleted since
ALTER TABLE grasp_job ADD COLUMN trajectories INTEGER NOT NULL DEFAULT 0;
ALTER TABLE grasp_job ADD COLUMN trajectory_bytes INTEGER NOT NULL DEFAULT 0;
-- chosen trials beyond the job's bound of bytes
ALTER TABLE grasp_job ADD COLUMN trajectories_left_out INTEGER NOT NULL DEFAULT 0;
-- digest of the scene that draws them; NULL: the job keeps no trajectories
ALTER TABLE grasp_job ADD COLUMN scene BLOB CHECK (scene IS NULL OR length(scene) = 32);

CREATE INDEX grasp_job_scene ON grasp_job (scene) WHERE scene IS NOT NULL;
