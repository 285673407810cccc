-- Version 2: API keys; the bytes of a snapshot lie in a table of their own.
--
-- In version 1 a change of a snapshot's row wrote its bytes anew. Now the end of a session marks
-- its snapshots as transient by touching a few bytes of each, and retention adds up their sizes in
-- an index. crc32 is NULL for bytes that version 1 wrote: nothing to check them against.

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    scope INTEGER NOT NULL,
    calls_per_second REAL NOT NULL,
    sessions INTEGER NOT NULL,
    create_time_us INTEGER NOT NULL,
    revoked INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot_bytes (
    snapshot INTEGER PRIMARY KEY REFERENCES snapshot (number) ON DELETE CASCADE,
    bytes BLOB NOT NULL
) STRICT;

INSERT INTO snapshot_bytes (snapshot, bytes) SELECT number, bytes FROM snapshot;
ALTER TABLE snapshot DROP COLUMN bytes;
ALTER TABLE snapshot ADD COLUMN crc32 INTEGER;
ALTER TABLE snapshot ADD COLUMN transient INTEGER NOT NULL DEFAULT 0;
UPDATE snapshot SET transient = 1 WHERE session IN (SELECT id FROM session WHERE ended = 1);
CREATE INDEX snapshot_transient ON snapshot (number, size) WHERE transient = 1;
