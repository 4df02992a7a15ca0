-- Leases: locks that no session holds. A tenure is one process that renews one row; all its leases of
-- one length hang on that row, so that a thousand of them are renewed by one statement. A lease has a
-- term, which is its fencing token. Time is the server's: no client's clock is ever looked at.
--
-- A lease that is over stays where it is until somebody wants its key. Whoever does deletes the row,
-- which a transaction that has checked the lease keeps locked until it ends.

CREATE TABLE holdfast.tenures (
    id uuid PRIMARY KEY, -- chosen by its process; who knows it may renew and release
    until timestamptz NOT NULL,
    lease_ms int NOT NULL,
    application text NOT NULL,
    host text NOT NULL,
    pid int NOT NULL,
    username name NOT NULL DEFAULT session_user
) WITH (fillfactor = 50);

CREATE TABLE holdfast.leases (
    term bigint NOT NULL,
    key bigint NOT NULL,
    space smallint NOT NULL,
    shared boolean NOT NULL,
    slot int NOT NULL,
    tenure uuid NOT NULL,
    nth bigint NOT NULL, -- which take of its tenure it was, counted by the process
    since timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (term, key, space)
);
CREATE INDEX leases_key ON holdfast.leases (key, space);
CREATE INDEX leases_tenure ON holdfast.leases (tenure);

-- For lists: without the ids.
CREATE VIEW holdfast.held_leases AS
SELECT l.key, l.space, l.shared, l.slot, l.term, l.since, t.until, t.application, t.host, t.pid, t.username
FROM holdfast.leases l JOIN holdfast.tenures t ON t.id = l.tenure
WHERE t.until > pg_catalog.clock_timestamp();

-- Deletes leases that are over from these keys. blocked: the first key with a lease that conflicts and
-- is not over, or is locked by a transaction that has checked it; 0: none. left_ms: how long that lasts,
-- if it is not renewed. newest: the greatest term that was met. own: a tenure whose leases are deleted
-- in any case, because its process asks only for what it does not hold.
--
-- It must see what was committed before the caller got the advisory lock of the key. So it is not a part
-- of the statement that takes that lock: each of its own statements has a snapshot of its own.
CREATE FUNCTION holdfast.evict(keys bigint[], spaces smallint[], want_shared boolean, own uuid,
                               OUT blocked int, OUT left_ms bigint, OUT newest bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    met record;
    ends timestamptz;
BEGIN
    FOR met IN
        SELECT w.i, l.term, l.key, l.space, l.tenure, t.until
        FROM unnest(keys, spaces) WITH ORDINALITY AS w (key, space, i)
        JOIN holdfast.leases l ON l.key = w.key AND l.space = w.space
        LEFT JOIN holdfast.tenures t ON t.id = l.tenure
        WHERE NOT (l.shared AND want_shared)
        ORDER BY w.i
    LOOP
        newest := greatest(newest, met.term);
        IF met.until > clock_timestamp() AND met.tenure IS DISTINCT FROM own THEN
            blocked := met.i;
            left_ms := ceil(extract(epoch FROM met.until - clock_timestamp()) * 1000);
            RETURN;
        END IF;
        -- Neither a transaction that has checked it nor a renewal that is under way is waited for.
        BEGIN
            PERFORM FROM holdfast.leases l
            WHERE l.term = met.term AND l.key = met.key AND l.space = met.space FOR UPDATE NOWAIT;
            IF met.tenure IS DISTINCT FROM own AND met.until > '-infinity' THEN
                SELECT t.until INTO ends FROM holdfast.tenures t WHERE t.id = met.tenure FOR UPDATE NOWAIT;
                IF ends > clock_timestamp() THEN
                    blocked := met.i;
                    RETURN;
                END IF;
                -- For good: it must not come back if the clock is set back.
                UPDATE holdfast.tenures t SET until = '-infinity' WHERE t.id = met.tenure;
            END IF;
            DELETE FROM holdfast.leases l WHERE l.term = met.term AND l.key = met.key AND l.space = met.space;
        EXCEPTION WHEN lock_not_available THEN
            blocked := met.i;
            RETURN;
        END;
    END LOOP;
    blocked := 0;
END $$;

-- The position of the first of these keys, whose advisory locks the caller has just got, that is leased; or 0.
CREATE FUNCTION holdfast.first_leased(keys bigint[], spaces smallint[], want_shared boolean) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (holdfast.evict(keys, spaces, want_shared, NULL)).blocked;
END $$;

-- Fails if one of them is: for locks of a transaction, which its end gives back.
CREATE FUNCTION holdfast.refuse_leased(keys bigint[], spaces smallint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    blocked CONSTANT int := (holdfast.evict(keys, spaces, false, NULL)).blocked;
BEGIN
    IF blocked > 0 THEN
        RAISE EXCEPTION 'key % is leased', keys[blocked] USING ERRCODE = 'HF003',
            HINT = 'Wait until the lease is released, or ends.';
    END IF;
END $$;

-- Takes leases of all keys, or of none. blocked 0: they are taken, under this term; left_ms is what is
-- left of the tenure. Else the position of the key in the way, as evict tells it, or -1: the tenure is
-- over. seen: a token that the term must be above. is_new: there is no such tenure yet.
--
-- The advisory locks of the keys are held until this statement has committed: whoever holds one as a
-- session lock or a transaction lock is in the way, and whoever gets it next sees these leases. What is
-- granted must not be forgotten by a crash, nor by a synchronous standby that takes over.
CREATE FUNCTION holdfast.take_leases(tenure uuid, is_new boolean, ms int, number bigint, keys bigint[],
                                     spaces smallint[], slots int[], want_shared boolean, seen bigint,
                                     application text, host text, pid int, ask bigint DEFAULT NULL,
                                     OUT blocked int, OUT left_ms bigint, OUT term bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    epoch int;
    ends timestamptz;
    evicted record;
    high int;
    low int;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'leases are taken under READ COMMITTED' USING ERRCODE = 'active_sql_transaction',
            HINT = 'The role or the database sets default_transaction_isolation: set it otherwise for this role.';
    END IF;
    IF (ms BETWEEN 1000 AND 86400000) IS NOT TRUE THEN -- as HF_LEASE_MIN_MS and HF_LEASE_MAX_MS
        RAISE EXCEPTION 'a lease lasts from 1000 to 86400000 ms, not %', ms USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    -- Somebody holds the ask of the key, as a session or as a lease: it goes before all others.
    IF ask IS NOT NULL AND (NOT pg_try_advisory_xact_lock_shared(ask)
                            OR holdfast.first_leased(ARRAY[ask], ARRAY[0::smallint], true) > 0) THEN
        blocked := 1;
        RETURN;
    END IF;
    FOR i IN 1 .. cardinality(keys) LOOP
        high := keys[i] >> 32;
        low := keys[i] << 32 >> 32;
        IF NOT (CASE WHEN spaces[i] = 0 AND want_shared THEN pg_try_advisory_xact_lock_shared(keys[i])
                     WHEN spaces[i] = 0 THEN pg_try_advisory_xact_lock(keys[i])
                     WHEN want_shared THEN pg_try_advisory_xact_lock_shared(high, low)
                     ELSE pg_try_advisory_xact_lock(high, low) END) THEN
            blocked := i;
            RETURN;
        END IF;
    END LOOP;
    IF EXISTS (SELECT FROM holdfast.leases l WHERE l.key = ANY (keys)) THEN -- mostly there is none
        evicted := holdfast.evict(keys, spaces, want_shared, tenure);
        IF evicted.blocked > 0 THEN
            blocked := evicted.blocked;
            left_ms := evicted.left_ms;
            RETURN;
        END IF;
        seen := greatest(seen, evicted.newest);
    END IF;

    IF is_new THEN
        INSERT INTO holdfast.tenures AS t (id, until, lease_ms, application, host, pid)
        VALUES (tenure, clock_timestamp() + ms * interval '1 ms', ms, $10, $11, $12)
        ON CONFLICT DO NOTHING;
    END IF;
    SELECT t.until INTO ends FROM holdfast.tenures t WHERE t.id = tenure;
    IF ends > clock_timestamp() AND ends < clock_timestamp() + ms * interval '0.5 ms' THEN
        UPDATE holdfast.tenures t SET until = clock_timestamp() + ms * interval '1 ms'
        WHERE t.id = tenure AND t.until > clock_timestamp() RETURNING t.until INTO ends;
    END IF;
    IF ends IS NULL OR ends <= clock_timestamp() THEN
        blocked := -1;
        RETURN;
    END IF;

    SELECT b.epoch INTO epoch FROM holdfast.boot b WHERE b.started = pg_postmaster_start_time();
    epoch := coalesce(epoch, holdfast.current_epoch());
    term := (epoch::bigint << 40) + nextval('holdfast.token');
    IF term <= seen THEN
        PERFORM holdfast.lift_token(seen);
        term := (epoch::bigint << 40) + nextval('holdfast.token');
    END IF;
    INSERT INTO holdfast.leases (term, key, space, shared, slot, tenure, nth)
    SELECT take_leases.term, w.key, w.space, want_shared, w.slot, take_leases.tenure, number
    FROM unnest(keys, spaces, slots) AS w (key, space, slot);
    left_ms := floor(extract(epoch FROM ends - clock_timestamp()) * 1000);
    blocked := 0;
END $$;

-- What is left of the tenure then; NULL: it is over.
CREATE FUNCTION holdfast.renew_tenure(tenure uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    ends timestamptz;
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    UPDATE holdfast.tenures t SET until = greatest(t.until, clock_timestamp() + t.lease_ms * interval '1 ms')
    WHERE t.id = tenure AND t.until > clock_timestamp() RETURNING t.until INTO ends;
    RETURN floor(extract(epoch FROM ends - clock_timestamp()) * 1000);
END $$;

-- missing: how many of the leases were not there. locked: how many stay until a transaction has ended;
-- sweep_leases deletes them. Those who listen for their companion keys are told. A release that a crash
-- forgets does no harm: the process sweeps when it is connected again.
CREATE FUNCTION holdfast.release_leases(tenure uuid, terms bigint[], keys bigint[], spaces smallint[],
                                        companions int[], channels text[], OUT missing int, OUT locked int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    IF current_setting('synchronous_commit') <> 'off' THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    missing := 0;
    locked := 0;
    FOR i IN 1 .. cardinality(keys) LOOP
        DELETE FROM holdfast.leases l WHERE l.ctid = (
            SELECT m.ctid FROM holdfast.leases m
            WHERE m.term = terms[i] AND m.key = keys[i] AND m.space = spaces[i] AND m.tenure = $1
            FOR UPDATE SKIP LOCKED);
        CONTINUE WHEN FOUND;
        IF EXISTS (SELECT FROM holdfast.leases l
                   WHERE l.term = terms[i] AND l.key = keys[i] AND l.space = spaces[i] AND l.tenure = $1) THEN
            locked := locked + 1;
        ELSE
            missing := missing + 1;
        END IF;
    END LOOP;
    -- Exclusive until the commit: who comes to listen waits for that, and then sees that they are gone.
    FOR i IN 1 .. cardinality(companions) LOOP
        IF NOT pg_try_advisory_xact_lock(1213156420, companions[i]) THEN
            PERFORM pg_notify(channels[i], '');
        END IF;
    END LOOP;
END $$;

-- Deletes what a tenure has and its process does not hold: a take or a release whose answer was lost. It
-- knows of its takes up to that number, and these are under way or held.
CREATE FUNCTION holdfast.sweep_leases(tenure uuid, up_to bigint, held bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
    WITH strays AS MATERIALIZED (
        SELECT l.term, l.key, l.space FROM holdfast.leases l
        WHERE l.tenure = $1 AND l.nth <= $2 AND l.nth <> ALL ($3)
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM holdfast.leases l USING strays s WHERE l.term = s.term AND l.key = s.key AND l.space = s.space
$$;

-- At the end of a process.
CREATE FUNCTION holdfast.end_tenures(ids uuid[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
    DELETE FROM holdfast.tenures t WHERE t.id = ANY ($1)
        AND NOT EXISTS (SELECT FROM holdfast.leases l WHERE l.tenure = t.id)
$$;

-- Fails unless all these leases are held under these terms, and keeps them from being taken by others
-- until the transaction ends. A transaction that only reads cannot do that, and needs not.
CREATE FUNCTION holdfast.check_leases(keys bigint[], spaces smallint[], terms bigint[], keep boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_current boolean;
BEGIN
    FOR i IN 1 .. cardinality(keys) LOOP
        IF keep THEN
            PERFORM FROM holdfast.leases l
            WHERE l.term = terms[i] AND l.key = keys[i] AND l.space = spaces[i] FOR KEY SHARE;
        END IF;
        SELECT t.until > clock_timestamp() INTO is_current
        FROM holdfast.leases l JOIN holdfast.tenures t ON t.id = l.tenure
        WHERE l.term = terms[i] AND l.key = keys[i] AND l.space = spaces[i];
        IF is_current IS NOT TRUE THEN
            RAISE EXCEPTION 'the lease of key % under term % is over', keys[i], terms[i] USING ERRCODE = 'HF002',
                HINT = 'Another may hold it by now; stop, and acquire it again.';
        END IF;
    END LOOP;
END $$;

-- The same for one lease of a label, for writers without the library: the first statement of the
-- transaction that writes. term is the token of the lease. It also knows the slots of a label.
CREATE FUNCTION holdfast.check_lease(label text, term bigint, derivation text DEFAULT 'sha256') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted CONSTANT bigint := holdfast.lock_key(label, derivation);
    place CONSTANT smallint := CASE WHEN holdfast.is_pair(derivation) THEN 1 ELSE 0 END;
    met record;
BEGIN
    SELECT l.key, l.space INTO met FROM holdfast.leases l
    WHERE l.term = $2 AND (l.key = wanted AND l.space = place
        OR l.slot > 0 AND EXISTS (SELECT FROM holdfast.labels n
                                  WHERE n.key = l.key AND n.space = l.space AND n.label = $1));
    IF met.key IS NULL THEN
        RAISE EXCEPTION 'the lease of ''%'' under term % is over', left(label, 200), term USING ERRCODE = 'HF002',
            HINT = 'Another may hold it by now; stop, and acquire it again.';
    END IF;
    PERFORM holdfast.check_leases(ARRAY[met.key], ARRAY[met.space], ARRAY[$2],
                                  current_setting('transaction_read_only') = 'off');
END $$;

-- Sessions whose transactions keep a lease of this key from being taken or ended: they have checked it.
-- Such a transaction has locked the row, so that xmax is its id, or the id of a list of them; which of
-- the two PostgreSQL does not tell. It has locked the table besides. If both could be, neither is told.
CREATE FUNCTION holdfast.lease_checkers(key bigint, space smallint, want_shared boolean,
                                        OUT pid int, OUT application text, OUT since timestamptz) RETURNS SETOF record
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    locker xid;
    members xid[];
    as_one int[];
    as_members int[];
BEGIN
    FOR locker IN SELECT l.xmax FROM holdfast.leases l
                  WHERE l.key = $1 AND l.space = $2 AND NOT (l.shared AND want_shared) AND l.xmax <> '0' LOOP
        BEGIN
            members := ARRAY(SELECT m.xid FROM pg_get_multixact_members(locker) m);
        EXCEPTION WHEN OTHERS THEN
            members := '{}'; -- there is no such list
        END;
        SELECT array_agg(x.pid) FILTER (WHERE x.transactionid = locker),
               array_agg(x.pid) FILTER (WHERE x.transactionid = ANY (members)) INTO as_one, as_members
        FROM pg_locks x
        WHERE x.locktype = 'transactionid' AND x.granted AND x.mode = 'ExclusiveLock'
          AND EXISTS (SELECT FROM pg_locks r
                      WHERE r.pid = x.pid AND r.locktype = 'relation' AND r.relation = 'holdfast.leases'::regclass
                        AND r.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                        AND r.mode = 'RowShareLock' AND r.granted);
        CONTINUE WHEN as_one IS NOT NULL AND as_members IS NOT NULL;
        RETURN QUERY SELECT a.pid, a.application_name, a.xact_start FROM pg_stat_get_activity(NULL) a
                     WHERE a.pid = ANY (coalesce(as_one, as_members)) ORDER BY a.xact_start;
    END LOOP;
END $$;

-- Ends the lease of this key and term, and says whether it was held. For a holder that is dead, whose time
-- is long: one that lives hears of it with its next renewal, and loses all that it has leased for that time.
-- It takes the rights of pg_terminate_backend: the holder's role, or pg_signal_backend. A transaction that has
-- checked the lease may still commit, and must have ended. The history has who asked for it.
CREATE FUNCTION holdfast.end_one_lease(key bigint, space smallint, term bigint, asked_by text, application text,
                                       host text, pid int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    met record;
BEGIN
    SELECT l.tenure, l.shared, r.oid AS role, coalesce(r.rolsuper, false) AS is_super INTO met
    FROM holdfast.leases l JOIN holdfast.tenures t ON t.id = l.tenure LEFT JOIN pg_roles r ON r.rolname = t.username
    WHERE l.key = $1 AND l.space = $2 AND l.term = $3 AND t.until > clock_timestamp();
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF NOT (coalesce(pg_has_role(session_user, met.role, 'USAGE'), false)
            OR pg_has_role(session_user, 'pg_signal_backend', 'USAGE'))
       OR met.is_super AND NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = session_user) THEN
        RAISE EXCEPTION 'permission denied to end a lease' USING ERRCODE = 'insufficient_privilege',
            HINT = 'It takes the role of its holder, or pg_signal_backend; only a superuser ends a superuser''s.';
    END IF;
    BEGIN
        PERFORM FROM holdfast.leases l WHERE l.key = $1 AND l.space = $2 AND l.term = $3 FOR UPDATE NOWAIT;
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION 'a transaction under the lease of key % is open', key USING ERRCODE = 'object_in_use',
            HINT = format('SELECT * FROM holdfast.lease_checkers(%s, %s::smallint, false) tells whose it is.', key, space);
    END;
    UPDATE holdfast.tenures t SET until = '-infinity' WHERE t.id = met.tenure AND t.until > clock_timestamp();
    IF FOUND THEN
        DELETE FROM holdfast.leases l WHERE l.key = $1 AND l.space = $2 AND l.term = $3;
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO holdfast.events (at, event, key, space, shared, token, application, host, pid, detail)
    VALUES (clock_timestamp(), 'terminated', $1, $2, met.shared, $3, $5, $6, $7, $4);
    RETURN true;
END $$;

CREATE FUNCTION holdfast.end_lease(key bigint, term bigint, space int DEFAULT 0) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT holdfast.end_one_lease($1, $3::smallint, $2, 'SQL, by ' || session_user, current_setting('application_name'),
                                  coalesce(host(inet_client_addr()), 'localhost'), 0)
$$;

-- The same for a label, also for one of its slots, which the term tells.
CREATE FUNCTION holdfast.end_lease(label text, term bigint, derivation text DEFAULT 'sha256') RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(bool_or(holdfast.end_lease(l.key, $2, l.space)), false) FROM holdfast.held_leases l
    WHERE l.term = $2 AND (l.key = holdfast.lock_key($1, $3)
            AND l.space = CASE WHEN holdfast.is_pair($3) THEN 1 ELSE 0 END
        OR l.slot > 0 AND EXISTS (SELECT FROM holdfast.labels n
                                  WHERE n.key = l.key AND n.space = l.space AND n.label = $1))
$$;

-- ---- locks of sessions and transactions, by SQL ----------------------------------------------------

-- how: 'wait' or 'try' for a lock of the transaction, 'keep' to try for one of the session. Under each of
-- them the key may be leased. A lease is waited for with the lock in hand, so that no other gets in between.
CREATE OR REPLACE FUNCTION holdfast.acquire(context text, label text, derivation text, how text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_pair CONSTANT boolean := holdfast.is_pair(derivation);
    spaces CONSTANT smallint[] := ARRAY[is_pair::int];
    key bigint;
    high int;
    low int;
    got boolean := true;
BEGIN
    PERFORM holdfast.refuse_useless(context, how = 'keep');
    LOOP
        key := holdfast.lock_key(label, derivation);
        high := key >> 32;
        low := key << 32 >> 32;
        IF how = 'wait' THEN
            IF is_pair THEN
                PERFORM pg_advisory_xact_lock(high, low);
            ELSE
                PERFORM pg_advisory_xact_lock(key);
            END IF;
            WHILE holdfast.first_leased(ARRAY[key], spaces, false) > 0 LOOP
                PERFORM pg_sleep(0.05 + random() * 0.2);
            END LOOP;
        ELSIF how = 'try' THEN
            BEGIN
                got := CASE WHEN is_pair THEN pg_try_advisory_xact_lock(high, low) ELSE pg_try_advisory_xact_lock(key) END;
                IF got THEN
                    PERFORM holdfast.refuse_leased(ARRAY[key], spaces);
                END IF;
            EXCEPTION WHEN SQLSTATE 'HF003' THEN
                got := false;
            END;
        ELSE
            got := CASE WHEN is_pair THEN pg_try_advisory_lock(high, low) ELSE pg_try_advisory_lock(key) END;
            IF got AND holdfast.first_leased(ARRAY[key], spaces, false) > 0 THEN
                got := false;
                PERFORM CASE WHEN is_pair THEN pg_advisory_unlock(high, low) ELSE pg_advisory_unlock(key) END;
            END IF;
        END IF;
        EXIT WHEN NOT got OR derivation COLLATE "C" <> 'minted';
        -- The id of a shared table changes only under its lock, so it is looked at again under it.
        EXIT WHEN key IS NOT DISTINCT FROM holdfast.find_table(label);
        IF how = 'keep' THEN
            PERFORM pg_advisory_unlock(key);
        END IF;
    END LOOP;
    RETURN got;
END $$;

-- Who holds what. not_before: the session is no older, so neither is the lock. A lease has no session, and
-- until tells when it ends unless it is renewed. Who waits for a key may hold its ask (lib/locks/yield.c), which
-- says nothing more: its number is made of the bytes of the key, the lowest first.
CREATE OR REPLACE VIEW holdfast.locks AS
WITH asks AS MATERIALIZED (
    SELECT ('x' || encode(substr(sha256('holdfast yield a'::bytea || set_byte('\x00'::bytea, 0, w.space)
        || (SELECT string_agg(substr(int8send(w.key), i, 1), ''::bytea ORDER BY i DESC) FROM generate_series(1, 8) i)
        || '\x00000000'::bytea), 1, 8), 'hex'))::bit(64)::bigint
    FROM holdfast.seen_locks w WHERE NOT w.granted
)
SELECT l.key, CASE l.space WHEN 0 THEN 'bigint' ELSE 'pair' END AS space, l.label, l.derivation,
       l.table_name, CASE WHEN l.shared THEN 'shared' ELSE 'exclusive' END AS mode, l.pid, l.application,
       l.username, l.client, l.host, l.process, l.since, l.not_before, l.token, l.slot, l.prepared,
       NULL::timestamptz AS until
FROM holdfast.seen_locks l
WHERE l.granted AND NOT (l.space = 0 AND l.key = ANY (SELECT * FROM asks))
UNION ALL
SELECT l.key, CASE l.space WHEN 0 THEN 'bigint' ELSE 'pair' END, n.label, n.derivation,
       coalesce(nullif(t.cluster, '') || '/', '') || t.database || '.' || t.table_name,
       CASE WHEN l.shared THEN 'shared' ELSE 'exclusive' END, NULL, l.application,
       l.username, NULL, l.host, l.pid, l.since, l.since, l.term, l.slot, NULL, l.until
FROM holdfast.held_leases l
LEFT JOIN holdfast.labels n ON n.key = l.key AND n.space = l.space
LEFT JOIN holdfast.table_registry t ON t.advisory_id = l.key AND l.space = 0;

-- ---- old rows --------------------------------------------------------------------------------------

-- Deletes what is old, at most once an hour for all processes: due is empty otherwise. Looking first
-- saves the lock of the row, which is a write, wherever it is not due.
CREATE OR REPLACE FUNCTION holdfast.housekeep() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH due AS (
        INSERT INTO holdfast.schedules AS s (label, last_start)
        SELECT 'holdfast: housekeeping', clock_timestamp()
        WHERE NOT EXISTS (
            SELECT FROM holdfast.schedules
            WHERE label = 'holdfast: housekeeping'
              AND last_start > clock_timestamp() - interval '1 hour'
              AND last_start < clock_timestamp() + interval '1 hour')
        ON CONFLICT (label) DO UPDATE SET last_start = excluded.last_start
        WHERE s.last_start < excluded.last_start - interval '1 hour'
           OR s.last_start > excluded.last_start + interval '1 hour'
        RETURNING 1
    ), alive AS MATERIALIZED (
        SELECT a.pid FROM pg_stat_get_activity(NULL) a WHERE EXISTS (SELECT FROM due)
    ), events AS (
        DELETE FROM holdfast.events WHERE EXISTS (SELECT FROM due) AND id IN (
            SELECT id FROM holdfast.events WHERE at < now() - interval '30 days' LIMIT 20000)
    ), contention AS (
        DELETE FROM holdfast.contention
        WHERE EXISTS (SELECT FROM due) AND at < now() - interval '30 days'
    ), commits AS (
        DELETE FROM holdfast.commits WHERE EXISTS (SELECT FROM due) AND attempt IN (
            SELECT attempt FROM holdfast.commits WHERE at < now() - interval '1 day' LIMIT 100000)
    ), labels AS (
        DELETE FROM holdfast.labels WHERE EXISTS (SELECT FROM due) AND (key, space) IN (
            SELECT key, space FROM holdfast.labels WHERE seen < now() - interval '90 days' LIMIT 20000)
    ), holders AS (
        DELETE FROM holdfast.holders
        WHERE EXISTS (SELECT FROM due) AND backend_pid NOT IN (SELECT pid FROM alive)
    ), waiters AS (
        DELETE FROM holdfast.waiters
        WHERE EXISTS (SELECT FROM due) AND backend_pid NOT IN (SELECT pid FROM alive)
    ), over AS MATERIALIZED (
        SELECT l.term, l.key, l.space FROM holdfast.leases l
        WHERE EXISTS (SELECT FROM due) AND NOT EXISTS (
            SELECT FROM holdfast.tenures t WHERE t.id = l.tenure AND t.until > clock_timestamp() - interval '1 hour')
        FOR UPDATE SKIP LOCKED
    ), leases AS (
        DELETE FROM holdfast.leases l USING over o WHERE l.term = o.term AND l.key = o.key AND l.space = o.space
    ), tenures AS (
        DELETE FROM holdfast.tenures t
        WHERE EXISTS (SELECT FROM due) AND t.until < clock_timestamp() - interval '1 hour'
          AND NOT EXISTS (SELECT FROM holdfast.leases l WHERE l.tenure = t.id)
    )
    DELETE FROM holdfast.sessions
    WHERE EXISTS (SELECT FROM due) AND backend_pid NOT IN (SELECT pid FROM alive)
$$;

-- ---- who may use it -----------------------------------------------------------------------------

REVOKE EXECUTE ON FUNCTION
    holdfast.take_leases(uuid, boolean, int, bigint, bigint[], smallint[], int[], boolean, bigint, text, text, int, bigint),
    holdfast.renew_tenure(uuid),
    holdfast.release_leases(uuid, bigint[], bigint[], smallint[], int[], text[]),
    holdfast.sweep_leases(uuid, bigint, bigint[]), holdfast.end_tenures(uuid[]),
    holdfast.check_leases(bigint[], smallint[], bigint[], boolean), holdfast.check_lease(text, bigint, text)
FROM PUBLIC;

CREATE OR REPLACE FUNCTION holdfast.grant_use(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA holdfast TO %s', role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.labels, holdfast.sessions, holdfast.holders,
                    holdfast.waiters, holdfast.events, holdfast.schedules, holdfast.commits,
                    holdfast.table_registry, holdfast.table_context_refs, holdfast.machines,
                    holdfast.appends, holdfast.contention TO %s', role);
    EXECUTE format('GRANT SELECT ON holdfast.fences, holdfast.boot, holdfast.locks, holdfast.waits,
                    holdfast.held_leases TO %s', role);
    EXECUTE format('GRANT USAGE ON SEQUENCE holdfast.token TO %s', role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO %s', role);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION holdfast.grant_use(regrole) FROM %s', role);
END $$;

-- Those who were let in before stay in, and who may read the records may read these.
DO $$
DECLARE
    grantee oid;
BEGIN
    FOR grantee IN SELECT DISTINCT g.grantee FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) g
                   WHERE c.oid = 'holdfast.commits'::pg_catalog.regclass AND g.privilege_type = 'DELETE'
                     AND g.grantee NOT IN (0, c.relowner) LOOP
        PERFORM holdfast.grant_use(grantee);
    END LOOP;
    FOR grantee IN SELECT DISTINCT g.grantee FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) g
                   WHERE c.oid = 'holdfast.holders'::pg_catalog.regclass AND g.privilege_type = 'SELECT'
                     AND g.grantee NOT IN (0, c.relowner) LOOP
        EXECUTE pg_catalog.format('GRANT SELECT ON holdfast.held_leases TO %s', grantee::pg_catalog.regrole);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION holdfast.schema_version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 6';
