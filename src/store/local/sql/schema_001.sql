-- Rows in holders and waiters outlive a killed process until somebody sweeps: who reads them asks
-- whether pid, started and pid_space still name a live process, and whether the byte is locked.

CREATE TABLE token (
    value INTEGER NOT NULL CHECK (typeof(value) = 'integer'),
    boot_id TEXT NOT NULL,
    swept_ms INTEGER NOT NULL
);

CREATE TABLE labels (
    space INTEGER NOT NULL,
    key INTEGER NOT NULL,
    label BLOB NOT NULL,
    derivation TEXT NOT NULL,
    seen_ms INTEGER NOT NULL,
    PRIMARY KEY (space, key)
) WITHOUT ROWID;

CREATE TABLE holders (
    space INTEGER NOT NULL,
    key INTEGER NOT NULL,
    seat INTEGER NOT NULL,
    shared INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    lifetime INTEGER NOT NULL,
    token INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    tid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    pid_space INTEGER NOT NULL,
    host TEXT NOT NULL,
    application TEXT NOT NULL,
    PRIMARY KEY (space, key, seat)
) WITHOUT ROWID;

-- One row per key of a wait that is taken already (standing 0) or waited for (1 at the head of the
-- queue, 2 behind others). A younger wait has a greater number.
CREATE TABLE waiters (
    wait INTEGER NOT NULL,
    space INTEGER NOT NULL,
    key INTEGER NOT NULL,
    shared INTEGER NOT NULL,
    standing INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    tid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    pid_space INTEGER NOT NULL,
    host TEXT NOT NULL,
    application TEXT NOT NULL,
    PRIMARY KEY (wait, space, key)
) WITHOUT ROWID;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    event TEXT NOT NULL,
    space INTEGER NOT NULL,
    key INTEGER NOT NULL,
    shared INTEGER NOT NULL,
    token INTEGER NOT NULL,
    wait_ms INTEGER,
    hold_ms INTEGER,
    application TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL
);
CREATE INDEX events_at ON events (at_ms);

CREATE TABLE schedules (
    label TEXT PRIMARY KEY,
    last_start_ms INTEGER NOT NULL
) WITHOUT ROWID;
