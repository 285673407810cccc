-- Version 6: the outbox, runs and benchmarks that wait to be sent to the database of a fleet.
--
-- Triggers note a row in the transaction that writes it, so a kill loses neither or both. A row that
-- changes again while it waits keeps its age and gets a later number: the newest content is sent, once.
-- outbox_state has a row only while a fleet is configured; without it the triggers do nothing.

CREATE TABLE outbox_state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL, -- of the last row noted; a start raises it to the clock's microseconds
    target TEXT NOT NULL -- identity of the database that has every row except those in the outbox
) STRICT;

CREATE TABLE outbox (
    sequence INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL, -- 1 run, 2 benchmark
    id BLOB NOT NULL CHECK (length(id) = 16),
    time_us INTEGER NOT NULL, -- waits since
    refused TEXT, -- message of the database that cannot store this row; NULL: to be sent
    UNIQUE (kind, id)
) STRICT;

CREATE TRIGGER outbox_run_insert AFTER INSERT ON run WHEN EXISTS (SELECT 1 FROM outbox_state) BEGIN
    UPDATE outbox_state SET sequence = sequence + 1;
    INSERT INTO outbox (sequence, kind, id, time_us)
    SELECT sequence, 1, NEW.id, unixepoch() * 1000000 FROM outbox_state WHERE true
    ON CONFLICT (kind, id) DO UPDATE SET sequence = excluded.sequence, refused = NULL;
END;

CREATE TRIGGER outbox_run_update AFTER UPDATE ON run WHEN EXISTS (SELECT 1 FROM outbox_state) BEGIN
    UPDATE outbox_state SET sequence = sequence + 1;
    INSERT INTO outbox (sequence, kind, id, time_us)
    SELECT sequence, 1, NEW.id, unixepoch() * 1000000 FROM outbox_state WHERE true
    ON CONFLICT (kind, id) DO UPDATE SET sequence = excluded.sequence, refused = NULL;
END;

CREATE TRIGGER outbox_benchmark_insert AFTER INSERT ON benchmark_run
WHEN EXISTS (SELECT 1 FROM outbox_state) BEGIN
    UPDATE outbox_state SET sequence = sequence + 1;
    INSERT INTO outbox (sequence, kind, id, time_us)
    SELECT sequence, 2, NEW.id, unixepoch() * 1000000 FROM outbox_state;
END;
