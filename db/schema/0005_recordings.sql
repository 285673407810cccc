-- Version 5: recordings of runs, one each, as the daemon packs them.

CREATE TABLE recording (
    number INTEGER PRIMARY KEY,
    run BLOB NOT NULL UNIQUE REFERENCES run (id) ON DELETE CASCADE,
    size INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

-- the sizes alone, for retention
CREATE INDEX recording_size ON recording (number, size);
