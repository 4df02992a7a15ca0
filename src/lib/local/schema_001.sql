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
    pid INTEGER NOT NULL,
    detail TEXT
);
CREATE INDEX events_at ON events (at_ms);

-- How contended locks were in ten minutes, by the registry's names, as collectors saw it; '_other' is the rest.
CREATE TABLE contention (
    at_ms INTEGER NOT NULL,
    lock TEXT NOT NULL,
    samples INTEGER NOT NULL,
    held INTEGER NOT NULL,
    waiters INTEGER NOT NULL,
    longest_wait_ms INTEGER NOT NULL,
    PRIMARY KEY (at_ms, lock)
) WITHOUT ROWID;

CREATE TABLE schedules (
    label TEXT PRIMARY KEY,
    last_start_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Shared tables: the id is the key of a table's lock. A retired row stays, so that no id is given twice.
CREATE TABLE table_registry (
    advisory_id INTEGER PRIMARY KEY CHECK (typeof(advisory_id) = 'integer' AND advisory_id > 0),
    cluster TEXT NOT NULL,
    database TEXT NOT NULL,
    table_name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    dropped_ms INTEGER
);
CREATE UNIQUE INDEX table_registry_live ON table_registry (cluster, database, table_name)
WHERE dropped_ms IS NULL;

CREATE TABLE table_context_refs (
    table_name TEXT NOT NULL,
    context_id TEXT NOT NULL,
    advisory_id INTEGER NOT NULL REFERENCES table_registry (advisory_id),
    PRIMARY KEY (advisory_id, context_id)
) WITHOUT ROWID;

-- Machine numbers of minted ids. Up to until_ms its holder may mint; it is free for others after that.
CREATE TABLE machines (
    machine INTEGER PRIMARY KEY CHECK (machine BETWEEN 1 AND 1023),
    until_ms INTEGER NOT NULL,
    holder TEXT NOT NULL
);
