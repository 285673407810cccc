-- Version 3: keys expire and remember their last use, refused keys are counted, and the last use of
-- assets and scenes is known, so that retention can take those that are no longer used.
--
-- Times of use lie in tables of their own: a change of an asset's row would write its bytes anew.
-- The uses of older rows begin with the upgrade.

ALTER TABLE api_key ADD COLUMN expire_time_us INTEGER NOT NULL DEFAULT 0; -- 0: never
ALTER TABLE api_key ADD COLUMN use_time_us INTEGER NOT NULL DEFAULT 0; -- 0: never used

CREATE TABLE key_refusal (
    key TEXT NOT NULL, -- the id that the caller showed; it need not exist
    peer TEXT NOT NULL, -- address without port
    reason TEXT NOT NULL,
    refusals INTEGER NOT NULL,
    first_time_us INTEGER NOT NULL,
    last_time_us INTEGER NOT NULL,
    PRIMARY KEY (key, peer, reason)
) STRICT, WITHOUT ROWID;

CREATE INDEX key_refusal_time ON key_refusal (last_time_us);

CREATE TABLE asset_use (
    asset INTEGER PRIMARY KEY REFERENCES asset (number) ON DELETE CASCADE,
    time_us INTEGER NOT NULL
) STRICT;

CREATE INDEX asset_use_time ON asset_use (time_us);
INSERT INTO asset_use (asset, time_us) SELECT number, unixepoch() * 1000000 FROM asset;

CREATE TABLE scene_use (
    scene INTEGER PRIMARY KEY REFERENCES scene (number) ON DELETE CASCADE,
    time_us INTEGER NOT NULL
) STRICT;

CREATE INDEX scene_use_time ON scene_use (time_us);
INSERT INTO scene_use (scene, time_us) SELECT number, unixepoch() * 1000000 FROM scene;

CREATE INDEX snapshot_scene ON snapshot (scene);
