-- Functions that run on a session with locks wait for no table for long: a statement that misses its
-- deadline costs the session. What the session holds and waits for lives in UNLOGGED tables: a crash empties them exactly when
-- it ends every session, and they cost no WAL.

CREATE SCHEMA holdfast;

CREATE FUNCTION holdfast.schema_version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';

-- Labels that keys were derived from: finds collisions and names keys in the live views.
CREATE TABLE holdfast.labels (
    key bigint NOT NULL,
    space smallint NOT NULL,
    label text NOT NULL,
    derivation text NOT NULL,
    seen timestamptz NOT NULL DEFAULT pg_catalog.now(),
    PRIMARY KEY (key, space)
);

CREATE UNLOGGED TABLE holdfast.sessions (
    backend_pid int PRIMARY KEY,
    backend_start timestamptz NOT NULL,
    application text NOT NULL,
    host text NOT NULL,
    pid int NOT NULL
);

-- Written for what is held longer than a moment, and outlives its lock until the session cleans up:
-- only pg_locks says what is held.
CREATE UNLOGGED TABLE holdfast.holders (
    backend_pid int NOT NULL,
    key bigint NOT NULL,
    space smallint NOT NULL,
    shared boolean NOT NULL,
    slot int NOT NULL,
    since timestamptz NOT NULL,
    token bigint NOT NULL, -- the sequence's part of it
    PRIMARY KEY (backend_pid, key, space)
) WITH (fillfactor = 70);

-- Long waits hold no snapshot, so pg_locks shows them only now and then.
CREATE UNLOGGED TABLE holdfast.waiters (
    backend_pid int NOT NULL,
    key bigint NOT NULL,
    space smallint NOT NULL,
    shared boolean NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (backend_pid, key, space)
);

CREATE TABLE holdfast.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    event text NOT NULL,
    key bigint NOT NULL,
    space smallint NOT NULL,
    shared boolean NOT NULL,
    token bigint NOT NULL,
    wait_ms bigint,
    hold_ms bigint,
    application text NOT NULL,
    host text NOT NULL,
    pid int NOT NULL,
    detail text -- why it was lost, how its command ended and so on
);
CREATE INDEX events_at ON holdfast.events (at);

-- How contended locks were in ten minutes, by the registry's names, as collectors saw it; '_other' is the rest.
CREATE TABLE holdfast.contention (
    at timestamptz NOT NULL,
    lock text NOT NULL,
    samples int NOT NULL,
    held int NOT NULL, -- samples in which somebody held it
    waiters int NOT NULL, -- the most at once
    longest_wait_ms bigint NOT NULL,
    PRIMARY KEY (at, lock)
);

CREATE TABLE holdfast.schedules (
    label text PRIMARY KEY,
    last_start timestamptz NOT NULL
);

-- A transaction's own word that it committed: present exactly if it did.
CREATE TABLE holdfast.commits (
    attempt uuid PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT pg_catalog.now()
);

CREATE TABLE holdfast.fences (
    resource text PRIMARY KEY,
    token bigint NOT NULL
);

-- Shared tables: the id is the key of a table's lock. A retired row stays, so that no id is given twice.
CREATE TABLE holdfast.table_registry (
    advisory_id bigint PRIMARY KEY CHECK (advisory_id > 0),
    cluster text NOT NULL,
    database text NOT NULL,
    table_name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    dropped_at timestamptz
);
CREATE UNIQUE INDEX table_registry_live ON holdfast.table_registry (cluster, database, table_name)
WHERE dropped_at IS NULL;

-- Who owns a shared table too; table_name is the registry's in one text, for people.
CREATE TABLE holdfast.table_context_refs (
    table_name text NOT NULL,
    context_id text NOT NULL,
    advisory_id bigint NOT NULL REFERENCES holdfast.table_registry,
    PRIMARY KEY (advisory_id, context_id)
);

-- Machine numbers of minted ids. Up to until_ms its holder may mint; it is free for others after that.
CREATE TABLE holdfast.machines (
    machine int PRIMARY KEY,
    until_ms bigint NOT NULL,
    holder text NOT NULL
) WITH (fillfactor = 50);
INSERT INTO holdfast.machines SELECT m, 0, '' FROM pg_catalog.generate_series(1, 1023) m;

-- What an append to a shared ClickHouse table came to, by its id. While it attaches, plan says what it found
-- and what it adds, so that whoever comes after a crash can tell what had been done.
CREATE TABLE holdfast.appends (
    id text PRIMARY KEY,
    table_name text NOT NULL,
    state text NOT NULL CHECK (state IN ('attaching', 'done', 'doubtful')),
    staging text NOT NULL,
    plan text NOT NULL,
    row_count bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT pg_catalog.now()
);
CREATE UNIQUE INDEX appends_attaching ON holdfast.appends (table_name) WHERE state = 'attaching';
CREATE INDEX appends_at ON holdfast.appends (at);

-- Fencing tokens: epoch above, sequence below. The sequence alone can step back: a crash forgets
-- what was not flushed, a promotion what was not replicated, pg_upgrade the timeline.
CREATE SEQUENCE holdfast.token AS bigint;

CREATE TABLE holdfast.epoch (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    system_identifier bigint NOT NULL,
    base int NOT NULL,
    timeline int NOT NULL
);
INSERT INTO holdfast.epoch (system_identifier, base, timeline)
SELECT system_identifier, 0, 0 FROM pg_catalog.pg_control_system();

-- Empty after a crash and after a promotion, which is how either is noticed.
CREATE UNLOGGED TABLE holdfast.boot (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    system_identifier bigint NOT NULL,
    wal_prefix text NOT NULL, -- of the names of WAL files: the timeline in hexadecimal
    epoch int NOT NULL
);

-- What a session calls first is written in SQL: loading PL/pgSQL and compiling for it would take longer
-- than all the rest of a short command.
CREATE FUNCTION holdfast.known_epoch() RETURNS int
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT b.epoch FROM holdfast.boot b
    WHERE b.system_identifier = (pg_control_system()).system_identifier
      -- pg_control_checkpoint() would show the old timeline until the first checkpoint.
      AND starts_with(pg_walfile_name(pg_current_wal_insert_lsn()), b.wal_prefix)
$$;

CREATE FUNCTION holdfast.current_epoch() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    this_system bigint := (SELECT c.system_identifier FROM pg_control_system() c);
    this_prefix text := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
    this_timeline int := ('x' || this_prefix)::bit(32)::int;
    found_epoch int := holdfast.known_epoch();
BEGIN
    IF found_epoch IS NOT NULL THEN
        RETURN found_epoch;
    END IF;

    LOCK TABLE holdfast.boot IN EXCLUSIVE MODE;
    SELECT b.epoch INTO found_epoch FROM holdfast.boot b
    WHERE b.system_identifier = this_system AND b.wal_prefix = this_prefix;
    IF found_epoch IS NOT NULL THEN
        RETURN found_epoch;
    END IF;

    -- The jump must be on disk (and on synchronous standbys) before anybody gets a token above it.
    PERFORM set_config('synchronous_commit', 'on', true);
    UPDATE holdfast.epoch e
    SET base = CASE WHEN e.system_identifier = this_system THEN e.base ELSE e.base + e.timeline END,
        system_identifier = this_system,
        timeline = this_timeline
    RETURNING e.base + e.timeline INTO found_epoch;
    PERFORM setval('holdfast.token', nextval('holdfast.token') + 16777216);
    DELETE FROM holdfast.boot;
    INSERT INTO holdfast.boot (system_identifier, wal_prefix, epoch)
    VALUES (this_system, this_prefix, found_epoch);
    RETURN found_epoch;
END $$;

-- leftovers: a session that had this pid before has died without a word.
CREATE FUNCTION holdfast.open_session(application text, host text, pid int, OUT epoch int, OUT leftovers boolean)
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
    WITH opened AS (
        INSERT INTO holdfast.sessions AS s (backend_pid, backend_start, application, host, pid)
        SELECT pg_backend_pid(), a.backend_start, $1, $2, $3
        FROM pg_stat_get_activity(pg_backend_pid()) a
        ON CONFLICT (backend_pid) DO UPDATE
        SET backend_start = excluded.backend_start, application = excluded.application,
            host = excluded.host, pid = excluded.pid
        RETURNING s.xmax <> 0 AS had_row
    )
    SELECT coalesce(holdfast.known_epoch(), holdfast.current_epoch()), had_row FROM opened
$$;

CREATE FUNCTION holdfast.drop_leftovers() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
    DELETE FROM holdfast.holders h WHERE h.backend_pid = pg_backend_pid();
    DELETE FROM holdfast.waiters w WHERE w.backend_pid = pg_backend_pid();
$$;

CREATE FUNCTION holdfast.close_session() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
    DELETE FROM holdfast.holders h WHERE h.backend_pid = pg_backend_pid();
    DELETE FROM holdfast.waiters w WHERE w.backend_pid = pg_backend_pid();
    DELETE FROM holdfast.sessions s WHERE s.backend_pid = pg_backend_pid();
$$;

-- The key is this label's on record, and note_labels would have nothing to write.
CREATE FUNCTION holdfast.knows_label(key bigint, space smallint, name text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM holdfast.labels l
                   WHERE l.key = $1 AND l.space = $2 AND l.label = $3
                     AND l.seen >= now() - interval '1 day')
$$;

-- Records labels; returns the first label that another one has taken the key of, and that other one.
CREATE FUNCTION holdfast.note_labels(keys bigint[], spaces smallint[], names text[], derivations text[],
                                     OUT wanted text, OUT taken_by text, OUT key bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO holdfast.labels AS l (key, space, label, derivation)
    SELECT * FROM unnest(keys, spaces, names, derivations)
    ON CONFLICT ON CONSTRAINT labels_pkey DO UPDATE SET seen = now()
    WHERE l.label = excluded.label AND l.seen < now() - interval '1 day';
    -- A statement of its own: it sees a row that a concurrent session has just committed.
    SELECT w.name, l.label, l.key INTO wanted, taken_by, note_labels.key
    FROM unnest(keys, spaces, names) AS w (key, space, name)
    JOIN holdfast.labels l ON l.key = w.key AND l.space = w.space
    WHERE l.label <> w.name
    LIMIT 1;
END $$;

-- Accepts a token for a resource unless a greater one was seen; call it in the transaction that
-- writes to the resource.
CREATE FUNCTION holdfast.fence(resource text, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    seen bigint;
BEGIN
    IF resource IS NULL OR token IS NULL THEN
        RAISE EXCEPTION 'holdfast.fence: resource and token must not be null'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
    INSERT INTO holdfast.fences AS f (resource, token) VALUES ($1, $2)
    ON CONFLICT ON CONSTRAINT fences_pkey DO UPDATE SET token = excluded.token
    WHERE f.token <= excluded.token;
    IF NOT FOUND THEN
        SELECT f.token INTO seen FROM holdfast.fences f WHERE f.resource = $1;
        RAISE EXCEPTION 'fenced: token % for ''%'' is older than %, which was seen before', token, resource, seen
            USING ERRCODE = 'HF001', HINT = 'Another holder took the lock since; stop and acquire it again.';
    END IF;
END $$;

-- Lets another role use tokens, holders, events and schedules.
CREATE FUNCTION holdfast.grant_use(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA holdfast TO %s', role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.labels, holdfast.sessions, holdfast.holders,
                    holdfast.waiters, holdfast.events, holdfast.schedules, holdfast.commits,
                    holdfast.table_registry, holdfast.table_context_refs, holdfast.machines,
                    holdfast.appends, holdfast.contention TO %s', role);
    EXECUTE format('GRANT SELECT ON holdfast.fences, holdfast.boot TO %s', role);
    EXECUTE format('GRANT USAGE ON SEQUENCE holdfast.token TO %s', role);
END $$;

REVOKE EXECUTE ON FUNCTION holdfast.grant_use(regrole) FROM PUBLIC;
