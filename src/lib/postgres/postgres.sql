-- Statements for PostgreSQL. One that is marked as prepared is called hf_NAME on the server, or as
-- its heading says, and is prepared after a few uses. The C code replaces @words@. BEGIN, COMMIT,
-- SET and LISTEN are in the C code.

-- ---- trying claims ------------------------------------------------------------------------------

-- name: try_one prepared
SELECT pg_catalog.pg_try_advisory_lock($1::bigint)

-- name: try_one_shared prepared
SELECT pg_catalog.pg_try_advisory_lock_shared($1::bigint)

-- name: try_set prepared
-- The position of the first key that is not free, or 0. LIMIT stops there and tries no later key.
SELECT coalesce((
    SELECT w.i
    FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) WITH ORDINALITY AS w (key, space, i)
    WHERE NOT CASE
        WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_try_advisory_lock_shared(w.key)
        WHEN w.space = 0 THEN pg_catalog.pg_try_advisory_lock(w.key)
        WHEN $3::boolean
            THEN pg_catalog.pg_try_advisory_lock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
        ELSE pg_catalog.pg_try_advisory_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
    END
    LIMIT 1), 0)

-- name: try_keys prepared
-- try_set for bigint keys only.
SELECT coalesce((
    SELECT w.i
    FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS w (key, i)
    WHERE NOT CASE WHEN $2::boolean THEN pg_catalog.pg_try_advisory_lock_shared(w.key)
                   ELSE pg_catalog.pg_try_advisory_lock(w.key) END
    LIMIT 1), 0)

-- name: try_one_token prepared as hf_take_one
-- The token is drawn after the key is locked, and behind that it is looked whether the key is leased: where
-- no lease ever was, the table is an empty file, which grows before the advisory lock of a lease is free.
SELECT got.ok, CASE WHEN got.ok THEN pg_catalog.nextval('holdfast.token') END,
       CASE WHEN got.ok AND pg_catalog.pg_relation_size('holdfast.leases') > 0
            THEN holdfast.first_leased(ARRAY[$1::bigint], ARRAY[0::smallint], false) END
FROM (SELECT pg_catalog.pg_try_advisory_lock($1::bigint) AS ok OFFSET 0) AS got

-- name: try_one_shared_token prepared as hf_take_one_shared
SELECT got.ok, CASE WHEN got.ok THEN pg_catalog.nextval('holdfast.token') END,
       CASE WHEN got.ok AND pg_catalog.pg_relation_size('holdfast.leases') > 0
            THEN holdfast.first_leased(ARRAY[$1::bigint], ARRAY[0::smallint], true) END
FROM (SELECT pg_catalog.pg_try_advisory_lock_shared($1::bigint) AS ok OFFSET 0) AS got

-- name: try_set_token prepared as hf_take_set
-- try_set, and one token for the set when all keys are held.
SELECT got.blocked, CASE WHEN got.blocked = 0 THEN pg_catalog.nextval('holdfast.token') END,
       CASE WHEN got.blocked = 0 AND pg_catalog.pg_relation_size('holdfast.leases') > 0
            THEN holdfast.first_leased($1::bigint[], $2::smallint[], $3::boolean) END
FROM (SELECT coalesce((
    SELECT w.i
    FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) WITH ORDINALITY AS w (key, space, i)
    WHERE NOT CASE
        WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_try_advisory_lock_shared(w.key)
        WHEN w.space = 0 THEN pg_catalog.pg_try_advisory_lock(w.key)
        WHEN $3::boolean
            THEN pg_catalog.pg_try_advisory_lock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
        ELSE pg_catalog.pg_try_advisory_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
    END
    LIMIT 1), 0) AS blocked OFFSET 0) AS got

-- name: try_keys_token prepared as hf_take_keys
SELECT got.blocked, CASE WHEN got.blocked = 0 THEN pg_catalog.nextval('holdfast.token') END,
       CASE WHEN got.blocked = 0 AND pg_catalog.pg_relation_size('holdfast.leases') > 0
            THEN holdfast.first_leased($1::bigint[], pg_catalog.array_fill(0::smallint, ARRAY[pg_catalog.cardinality($1::bigint[])]), $2::boolean) END
FROM (SELECT coalesce((
    SELECT w.i
    FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS w (key, i)
    WHERE NOT CASE WHEN $2::boolean THEN pg_catalog.pg_try_advisory_lock_shared(w.key)
                   ELSE pg_catalog.pg_try_advisory_lock(w.key) END
    LIMIT 1), 0) AS blocked OFFSET 0) AS got

-- name: first_leased
-- Where no token is drawn: the same look in a statement of its own. $3 shared.
SELECT CASE WHEN pg_catalog.pg_relation_size('holdfast.leases') > 0
            THEN holdfast.first_leased($1::bigint[], $2::smallint[], $3::boolean) ELSE 0 END

-- name: next_token prepared
SELECT pg_catalog.nextval('holdfast.token')

-- name: undo
-- After an error we do not know which keys of a set are locked: unlocks those that are, without a
-- warning in the server's log for the others.
WITH mine AS MATERIALIZED (
    SELECT (l.classid::bigint << 32) | l.objid::bigint AS key, l.objsubid - 1 AS space
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.pid = pg_catalog.pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND l.mode = CASE WHEN @shared@ THEN 'ShareLock' ELSE 'ExclusiveLock' END
)
SELECT count(CASE
    WHEN w.space = 0 AND @shared@ THEN pg_catalog.pg_advisory_unlock_shared(w.key)
    WHEN w.space = 0 THEN pg_catalog.pg_advisory_unlock(w.key)
    WHEN @shared@
        THEN pg_catalog.pg_advisory_unlock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
    ELSE pg_catalog.pg_advisory_unlock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
END)
FROM ROWS FROM (pg_catalog.unnest(@keys@::bigint[]), pg_catalog.unnest(@spaces@::smallint[])) AS w (key, space)
JOIN mine USING (key, space)

-- name: end_abandoned
-- Before undo, on a session that waits: a statement that nobody waited for may have left its
-- transaction open, in error.
ROLLBACK

-- ---- leases -------------------------------------------------------------------------------------

-- Each is one statement and leaves nothing in its session, so that it goes through any pooler.

-- name: take_leases prepared
SELECT t.blocked, t.left_ms, t.term
FROM holdfast.take_leases($1::uuid, $2::boolean, $3::int, $4::bigint, $5::bigint[], $6::smallint[], $7::int[],
                          $8::boolean, $9::bigint, $10::text, $11::text, $12::int, $13::bigint) AS t

-- name: take_traced_leases prepared
-- The same, and $14 is recorded with them.
SELECT t.blocked, t.left_ms, t.term
FROM holdfast.take_traced_leases($14::text, $1::uuid, $2::boolean, $3::int, $4::bigint, $5::bigint[], $6::smallint[],
                                 $7::int[], $8::boolean, $9::bigint, $10::text, $11::text, $12::int, $13::bigint) AS t

-- name: release_leases prepared
SELECT r.missing, r.locked
FROM holdfast.release_leases($1::uuid, $2::bigint[], $3::bigint[], $4::smallint[], $5::int[], $6::text[]) AS r

-- name: renew_tenure prepared
SELECT holdfast.renew_tenure($1::uuid)

-- name: sweep_leases
SELECT holdfast.sweep_leases($1::uuid, $2::bigint, $3::bigint[])

-- name: sweep_behind
-- Its arguments follow as text: an errand has no parameters.
SELECT holdfast.sweep_leases

-- name: end_tenures
SELECT holdfast.end_tenures($1::uuid[])

-- name: check_leases
-- $4: keep them from being taken until the transaction ends.
SELECT holdfast.check_leases($1::bigint[], $2::smallint[], $3::bigint[], $4::boolean)

-- name: find_lease
-- Who holds a lease of key $1 in space $2 that conflicts with $3 (shared?), or has a transaction open under
-- one that is over, as the column before the last says. Version 6 of the schema has no traceparent.
SELECT l.application, l.host, l.backend,
       (extract(epoch FROM pg_catalog.clock_timestamp() - l.since) * 1000)::bigint, true, l.pid, true, l.traceparent, l.checks, l.term
FROM (
    SELECT h.application, h.host, NULL::int AS backend, h.since, h.pid,
           pg_catalog.to_jsonb(h) ->> 'traceparent' AS traceparent, false AS checks, h.term
    FROM holdfast.held_leases h
    WHERE h.key = $1::bigint AND h.space = $2::smallint AND NOT (h.shared AND $3::boolean)
    UNION ALL
    SELECT c.application, '', c.pid, c.since, NULL, NULL, true, NULL
    FROM holdfast.lease_checkers($1::bigint, $2::smallint, $3::boolean) c
) l
ORDER BY l.checks, l.since
LIMIT 1

-- ---- waiting ------------------------------------------------------------------------------------

-- name: queue
-- Waits in PostgreSQL's own queue with a transaction lock, at most @ms@ ms for all keys together,
-- and then takes a session lock without waiting, so no timeout can come between grant and answer.
-- The timeout is caught here, so that it leaves no line in the server's log. A script cannot have
-- parameters, so our own integers and names replace the @words@. @free@ is false while somebody asks
-- for the key, and otherwise keeps that one out until the wait is over: see yield.c.
BEGIN ISOLATION LEVEL READ COMMITTED;
DO $queue$
DECLARE
    until timestamptz := pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => @ms@ / 1000.0);
    keys bigint[] := @keys@;
    spaces smallint[] := @spaces@;
    want_shared boolean := @shared@;
BEGIN
    FOR i IN 1 .. CASE WHEN @free@ THEN pg_catalog.cardinality(keys) ELSE 0 END LOOP
        PERFORM pg_catalog.set_config('lock_timeout', greatest(1, pg_catalog.ceil(
            extract(epoch FROM until - pg_catalog.clock_timestamp()) * 1000))::int::text, true);
        IF spaces[i] = 0 AND want_shared THEN
            PERFORM pg_catalog.pg_advisory_xact_lock_shared(keys[i]);
        ELSIF spaces[i] = 0 THEN
            PERFORM pg_catalog.pg_advisory_xact_lock(keys[i]);
        ELSIF want_shared THEN
            PERFORM pg_catalog.pg_advisory_xact_lock_shared((keys[i] >> 32)::int, ((keys[i] << 32) >> 32)::int);
        ELSE
            PERFORM pg_catalog.pg_advisory_xact_lock((keys[i] >> 32)::int, ((keys[i] << 32) >> 32)::int);
        END IF;
    END LOOP;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    NULL;
END $queue$;
SET LOCAL lock_timeout = 0;
EXECUTE @execute@;
COMMIT

-- name: queue_one
-- The same for one bigint key, as in most waits.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = @ms@;
DO $queue$BEGIN
    IF @free@ THEN
        PERFORM pg_catalog.@lock@(@key@);
    END IF;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    NULL;
END$queue$;
SET LOCAL lock_timeout = 0;
EXECUTE @execute@;
COMMIT

-- name: probe
-- The position of the first key that somebody holds ($2), or that nobody holds; or 0. $3: holders who
-- share it do not count. What it locks to find out ends with the statement, so a client that is
-- stopped here holds nothing.
SELECT coalesce((
    SELECT w.i
    FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS w (key, i)
    WHERE CASE WHEN $3::boolean THEN pg_catalog.pg_try_advisory_xact_lock_shared(w.key)
               ELSE pg_catalog.pg_try_advisory_xact_lock(w.key) END <> $2::boolean
    LIMIT 1), 0)

-- name: probe_leased
-- The same where keys may be leased.
SELECT coalesce((
    SELECT w.i
    FROM pg_catalog.unnest($1::bigint[]) WITH ORDINALITY AS w (key, i)
    WHERE CASE WHEN $3::boolean AND NOT pg_catalog.pg_try_advisory_xact_lock_shared(w.key) THEN false
               WHEN NOT $3::boolean AND NOT pg_catalog.pg_try_advisory_xact_lock(w.key) THEN false
               WHEN pg_catalog.pg_relation_size('holdfast.leases') = 0 THEN true
               ELSE holdfast.first_leased(ARRAY[w.key], ARRAY[0::smallint], $3::boolean) = 0 END <> $2::boolean
    LIMIT 1), 0)

-- name: list_places
-- The numbers of the places that are taken in the line of a key ($1 its companion): see line.c.
SELECT l.classid::bigint - 1213267968
FROM pg_catalog.pg_locks l
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
  AND l.classid::bigint BETWEEN 1213267968 AND 1213267968 + 65535 AND l.objid = ($1::bigint & 4294967295)::oid
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())

-- name: take_place
-- The first number from $1 on that is free; others may join at the same time. $2 companion.
SELECT n FROM pg_catalog.generate_series($1::int, $1::int + 1000) AS n
WHERE pg_catalog.pg_try_advisory_lock(1213267968 + (n & 65535), $2::int)
LIMIT 1

-- name: place_ahead
-- The first number from $1 to $2 that is taken. $3 companion.
SELECT n FROM pg_catalog.generate_series($1::int, $2::int) AS n
WHERE CASE WHEN pg_catalog.pg_try_advisory_lock_shared(1213267968 + (n & 65535), $3::int)
           THEN NOT pg_catalog.pg_advisory_unlock_shared(1213267968 + (n & 65535), $3::int)
           ELSE true END
LIMIT 1

-- name: leave_place
SELECT pg_catalog.pg_advisory_unlock(1213267968 + @number@, @companion@)

-- name: is_contended
-- $1 classid, $2 objid, $3 objsubid, $4 companion class, $5 companion.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory'
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
      AND (l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = $3::smallint AND NOT l.granted
           OR l.classid = $4::bigint::oid AND l.objid = $5::bigint::oid AND l.objsubid = 2 AND l.granted))

-- ---- releasing ----------------------------------------------------------------------------------

-- name: release_one prepared
-- Unlocks, then looks whether anybody listens: a listener holds the companion key ($2) shared. True:
-- nobody. False: somebody, and the caller runs tell_listeners. NULL: the key was not held. Notifying
-- is a statement of its own because it can fail, in a full queue, and an error must not leave open
-- whether the key is free. The companion goes back with the statement, which is one call less.
SELECT CASE WHEN pg_catalog.pg_advisory_unlock($1::bigint)
            THEN pg_catalog.pg_try_advisory_xact_lock(1213156420, $2::int) END

-- name: release_one_shared prepared
-- Others who share the key may release it in the same moment: each is rid of the companion at once, so
-- that they do not take each other for listeners.
SELECT CASE WHEN NOT pg_catalog.pg_advisory_unlock_shared($1::bigint) THEN NULL
            WHEN pg_catalog.pg_try_advisory_lock(1213156420, $2::int)
            THEN pg_catalog.pg_advisory_unlock(1213156420, $2::int)
            ELSE false END

-- name: tx_release_one
-- release_one behind a COMMIT, where nobody is left to run tell_listeners. $3 channel.
SELECT pg_catalog.pg_advisory_unlock($1::bigint),
       CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, $2::int)
            THEN pg_catalog.pg_advisory_unlock(1213156420, $2::int)
            ELSE pg_catalog.pg_notify($3::text, '') IS NULL END

-- name: release_set prepared
-- How many of the keys were not held, and whether somebody listens for any key at all: then the
-- caller runs tell_listeners.
SELECT freed.missing,
       CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, 1)
            THEN NOT pg_catalog.pg_advisory_unlock(1213156420, 1)
            ELSE true END
FROM (SELECT pg_catalog.count(*) FILTER (WHERE NOT CASE
          WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_advisory_unlock_shared(w.key)
          WHEN w.space = 0 THEN pg_catalog.pg_advisory_unlock(w.key)
          WHEN $3::boolean
              THEN pg_catalog.pg_advisory_unlock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
          ELSE pg_catalog.pg_advisory_unlock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
      END) AS missing
      FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)) AS freed

-- name: release_keys prepared
-- release_set for bigint keys alone.
SELECT freed.missing,
       CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, 1)
            THEN NOT pg_catalog.pg_advisory_unlock(1213156420, 1)
            ELSE true END
FROM (SELECT pg_catalog.count(*) FILTER (
                 WHERE NOT CASE WHEN $2::boolean THEN pg_catalog.pg_advisory_unlock_shared(w.key)
                                ELSE pg_catalog.pg_advisory_unlock(w.key) END) AS missing
      FROM pg_catalog.unnest($1::bigint[]) AS w (key)) AS freed

-- name: tell_listeners prepared
SELECT pg_catalog.count(CASE WHEN pg_catalog.pg_try_advisory_lock(1213156420, w.companion)
                             THEN pg_catalog.pg_advisory_unlock(1213156420, w.companion)
                             ELSE pg_catalog.pg_notify(w.channel, '') IS NULL END)
FROM ROWS FROM (pg_catalog.unnest($1::int[]), pg_catalog.unnest($2::text[])) AS w (companion, channel)

-- ---- records ------------------------------------------------------------------------------------

-- name: knows_label
-- Looks at the first elements only; the parameters are arrays because note_labels gets the same.
SELECT holdfast.knows_label(($1::bigint[])[1], ($2::smallint[])[1], ($3::text[])[1])
FROM (SELECT pg_catalog.set_config('lock_timeout', $4::text, true) OFFSET 0) AS bounded

-- name: note_labels prepared
-- $5 limits the wait for the table, because a statement that misses its deadline costs the session
-- and its locks.
SELECT noted.wanted, noted.taken_by, noted.key
FROM (SELECT pg_catalog.set_config('lock_timeout', $5::text, true) OFFSET 0) AS bounded,
     LATERAL holdfast.note_labels($1::bigint[], $2::smallint[], $3::text[], $4::text[]) AS noted

-- name: add_holders prepared
-- Records keys that have been held for a while; replaces the row of an earlier hold.
INSERT INTO holdfast.holders (backend_pid, key, space, shared, slot, since, token, traceparent)
SELECT DISTINCT ON (h.backend_pid, h.key, h.space) h.backend_pid, h.key, h.space, h.shared, h.slot,
       pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => h.age_ms / 1000.0),
       h.token, h.traceparent
FROM ROWS FROM (pg_catalog.unnest($1::int[]), pg_catalog.unnest($2::bigint[]), pg_catalog.unnest($3::smallint[]),
                pg_catalog.unnest($4::boolean[]), pg_catalog.unnest($5::int[]), pg_catalog.unnest($6::bigint[]),
                pg_catalog.unnest($7::bigint[]), pg_catalog.unnest($8::text[]))
     AS h (backend_pid, key, space, shared, slot, age_ms, token, traceparent)
ORDER BY h.backend_pid, h.key, h.space, h.token DESC
ON CONFLICT (backend_pid, key, space) DO UPDATE
SET shared = excluded.shared, slot = excluded.slot, since = excluded.since, token = excluded.token,
    traceparent = excluded.traceparent

-- name: drop_holders prepared
-- Deletes the records of released locks of this process ($2 host, $3 pid), on whatever session they
-- were.
DELETE FROM holdfast.holders h
USING holdfast.sessions s
WHERE s.host = $2::text AND s.pid = $3::int AND h.backend_pid = s.backend_pid
  AND h.token = ANY ($1::bigint[])

-- name: add_waiter
INSERT INTO holdfast.waiters (backend_pid, key, space, shared, since)
VALUES (pg_catalog.pg_backend_pid(), $1::bigint, $2::smallint, $3::boolean,
        pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $4::float8 / 1000))
ON CONFLICT (backend_pid, key, space) DO UPDATE SET shared = excluded.shared, since = excluded.since

-- name: drop_waiter
-- An errand, which takes no parameters.
DELETE FROM holdfast.waiters
WHERE backend_pid = pg_catalog.pg_backend_pid() AND key = @key@ AND space = @space@

-- name: add_events prepared
-- $13: the answer to an earlier try was lost, so that they may be there already.
INSERT INTO holdfast.events (at, event, key, space, shared, token, wait_ms, hold_ms, application, host, pid, detail)
SELECT pg_catalog.to_timestamp(e.at_ms / 1000.0), e.event, e.key, e.space, e.shared, e.token,
       nullif(e.wait_ms, -1), nullif(e.hold_ms, -1), $9::text, $10::text, $11::int, nullif(e.detail, '')
FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::bigint[]), pg_catalog.unnest($4::smallint[]), pg_catalog.unnest($5::boolean[]), pg_catalog.unnest($6::bigint[]), pg_catalog.unnest($7::bigint[]), pg_catalog.unnest($8::bigint[]), pg_catalog.unnest($12::text[]))
     AS e (at_ms, event, key, space, shared, token, wait_ms, hold_ms, detail)
WHERE NOT ($13::boolean AND EXISTS (
    SELECT FROM holdfast.events x
    WHERE x.at = pg_catalog.to_timestamp(e.at_ms / 1000.0) AND x.event = e.event AND x.key = e.key
      AND x.space = e.space AND x.token = e.token AND x.host = $10::text AND x.pid = $11::int))

-- name: housekeep
SELECT holdfast.housekeep()

-- name: housekeeping_is_due
-- The function looks, too; but on a new session, as that of each command is, it takes ten milliseconds to
-- plan what it would do.
SELECT NOT EXISTS (SELECT FROM holdfast.schedules s
                   WHERE s.label = 'holdfast: housekeeping'
                     AND s.last_start > pg_catalog.clock_timestamp() - interval '1 hour'
                     AND s.last_start < pg_catalog.clock_timestamp() + interval '1 hour')

-- name: schedule_left
SELECT greatest(0, pg_catalog.ceil(extract(epoch FROM last_start - pg_catalog.clock_timestamp()) * 1000
                                   + $2::float8))::bigint
FROM holdfast.schedules WHERE label = $1::text

-- name: claim_schedule
-- Due if nothing was recorded, if the period has passed, or if the clock was set far back. The row
-- is durable before the job starts: a crash must not make it run twice in a period. Returns the
-- start, and the one before it.
WITH durable AS MATERIALIZED (SELECT pg_catalog.set_config('synchronous_commit', 'on', true)),
     before AS MATERIALIZED (SELECT last_start FROM holdfast.schedules WHERE label = $1::text)
INSERT INTO holdfast.schedules AS s (label, last_start)
SELECT $1::text, pg_catalog.clock_timestamp() FROM durable
ON CONFLICT (label) DO UPDATE SET last_start = excluded.last_start
WHERE s.last_start <= excluded.last_start - pg_catalog.make_interval(secs => $2::float8 / 1000)
   OR s.last_start > excluded.last_start + pg_catalog.make_interval(secs => $2::float8 / 1000)
RETURNING s.last_start, (SELECT b.last_start FROM before b)

-- name: end_claim
-- Ends backend $1 of process $3 on host $2, and waits $4 ms until it is gone: what it was about to
-- commit is committed then, or never. False: it is still there.
SELECT pg_catalog.pg_terminate_backend(a.pid, $4::bigint)
FROM pg_catalog.pg_stat_activity a
JOIN holdfast.sessions s ON s.backend_pid = a.pid AND s.backend_start = a.backend_start
WHERE a.pid = $1::int AND s.host = $2::text AND s.pid = $3::int

-- name: unclaim_schedule
-- Takes the start $2 of label $1 back; $3 is the one before it, or NULL. Does not wait for standbys.
WITH first AS (
    DELETE FROM holdfast.schedules
    WHERE label = $1::text AND last_start = $2::timestamptz AND $3::timestamptz IS NULL
)
UPDATE holdfast.schedules SET last_start = $3::timestamptz
WHERE label = $1::text AND last_start = $2::timestamptz AND $3::timestamptz IS NOT NULL

-- ---- who holds what -----------------------------------------------------------------------------

-- name: find_holder
-- Who holds the key ($1 classid, $2 objid, $3 objsubid) in a mode that conflicts with $4 (shared?);
-- if nobody does, who waits for it.
SELECT coalesce(a.application_name, ''), coalesce(a.client_hostname, pg_catalog.host(a.client_addr), ''),
       l.pid, (extract(epoch FROM pg_catalog.clock_timestamp() - a.backend_start) * 1000)::bigint, l.granted
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = $3::smallint
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
  AND (NOT $4::boolean OR l.mode = 'ExclusiveLock')
  AND l.pid <> pg_catalog.pg_backend_pid()
ORDER BY l.granted DESC, a.backend_start
LIMIT 1

-- name: find_holder_recorded
-- The same, with what the holder has recorded.
SELECT coalesce(s.application, a.application_name, ''),
       coalesce(s.host, a.client_hostname, pg_catalog.host(a.client_addr), ''), l.pid,
       -- A holder that records has a row soon: none yet means that it got the lock just now.
       CASE WHEN s.backend_pid IS NOT NULL AND h.since IS NULL THEN 0
            ELSE (extract(epoch FROM pg_catalog.clock_timestamp() - coalesce(h.since, a.backend_start)) * 1000)::bigint
       END, l.granted, coalesce(s.pid, 0), s.backend_pid IS NOT NULL, h.traceparent
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
LEFT JOIN holdfast.sessions s
    ON s.backend_pid = l.pid AND s.backend_start = coalesce(a.backend_start, s.backend_start)
LEFT JOIN holdfast.holders h
    ON h.backend_pid = s.backend_pid AND h.key = ($1::bigint << 32 | $2::bigint) AND h.space = $3::smallint - 1
   AND h.since >= s.backend_start
WHERE l.locktype = 'advisory' AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = $3::smallint
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
  AND (NOT $4::boolean OR l.mode = 'ExclusiveLock')
  AND l.pid <> pg_catalog.pg_backend_pid()
ORDER BY l.granted DESC, a.backend_start
LIMIT 1

-- name: list
-- Every advisory lock of the database from one read of pg_locks. Columns as in list_recorded.
SELECT l.classid::bigint, l.objid::bigint, l.objsubid, l.mode = 'ShareLock', l.granted, l.pid,
       coalesce(a.application_name, ''), coalesce(a.client_hostname, pg_catalog.host(a.client_addr), ''),
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - CASE WHEN l.granted THEN a.backend_start ELSE l.waitstart END) * 1000)::bigint,
       CASE WHEN a.state = 'idle' AND a.state_change <= pg_catalog.statement_timestamp()
            THEN (pg_catalog.date_part('epoch', pg_catalog.statement_timestamp() - a.state_change) * 1000)::bigint END,
       a.state IS NULL OR a.state = 'disabled',
       NULL::text, NULL::text, NULL::int, NULL::bigint, NULL::bigint, NULL::int, pg_catalog.current_database(), NULL::bigint,
       NULL::text
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())

-- name: list_recorded
-- The columns from the 12th on are recorded ones: label, host, pid, age in ms, token, slot; then the database, and what
-- is left of a lease in ms, which has no session, and the traceparent of the hold. Waits
-- that sleep without a snapshot are not in pg_locks; their rows come from holdfast.waiters. If a
-- session is idle since before the statement, it was idle when pg_locks was read, so what it holds
-- are session locks.
WITH live AS MATERIALIZED (
    SELECT l.classid::bigint AS classid, l.objid::bigint AS objid, l.objsubid, l.mode = 'ShareLock' AS shared,
           l.granted, l.pid, l.waitstart, NULL::timestamptz AS waiting_since,
           (l.classid::bigint << 32) | l.objid::bigint AS key
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory'
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
), sleeping AS (
    SELECT (w.key >> 32) & 4294967295, w.key & 4294967295, w.space + 1, w.shared, false, w.backend_pid,
           w.since, w.since, w.key
    FROM holdfast.waiters w
), rows AS (
    SELECT * FROM live UNION ALL SELECT * FROM sleeping
)
SELECT r.classid, r.objid, r.objsubid, r.shared, r.granted, r.pid,
       coalesce(s.application, a.application_name, ''),
       coalesce(a.client_hostname, pg_catalog.host(a.client_addr), ''),
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - CASE WHEN r.granted THEN a.backend_start ELSE r.waitstart END) * 1000)::bigint,
       CASE WHEN a.state = 'idle' AND a.state_change <= pg_catalog.statement_timestamp()
            THEN (pg_catalog.date_part('epoch', pg_catalog.statement_timestamp() - a.state_change) * 1000)::bigint END,
       a.state IS NULL OR a.state = 'disabled',
       lb.label, s.host, s.pid,
       -- A holder that records has a row soon: none yet means that it got the lock just now.
       CASE WHEN r.granted AND s.backend_pid IS NOT NULL AND h.since IS NULL THEN 0
            WHEN r.granted THEN (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - h.since) * 1000)::bigint
            ELSE (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - r.waiting_since) * 1000)::bigint END,
       CASE WHEN r.granted THEN h.token END, CASE WHEN r.granted THEN h.slot END, pg_catalog.current_database(), NULL::bigint,
       CASE WHEN r.granted THEN h.traceparent END
FROM rows r
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = r.pid
LEFT JOIN holdfast.sessions s
    ON s.backend_pid = r.pid AND s.backend_start = coalesce(a.backend_start, s.backend_start)
LEFT JOIN holdfast.holders h
    ON h.backend_pid = s.backend_pid AND h.key = r.key AND h.space = r.objsubid - 1
   AND h.since >= s.backend_start
LEFT JOIN holdfast.labels lb ON lb.key = r.key AND lb.space = r.objsubid - 1
-- A prepared transaction has no session.
WHERE (a.pid IS NOT NULL OR r.pid IS NULL)
  AND (r.waiting_since IS NULL OR s.backend_pid IS NOT NULL)
  -- A recorded waiter that queues for a slice is also in pg_locks, with another of its sessions.
  AND NOT (NOT r.granted AND r.waiting_since IS NULL AND EXISTS (
      SELECT FROM holdfast.waiters w JOIN holdfast.sessions ws ON ws.backend_pid = w.backend_pid
      JOIN pg_catalog.pg_stat_activity wa ON wa.pid = w.backend_pid
      WHERE w.key = r.key AND w.space = r.objsubid - 1 AND ws.host = s.host AND ws.pid = s.pid
        AND ws.backend_start = coalesce(wa.backend_start, ws.backend_start)))
UNION ALL
SELECT (l.key >> 32) & 4294967295, l.key & 4294967295, l.space + 1, l.shared, true, NULL::int, l.application, '',
       NULL::bigint, NULL::bigint, false, lb.label, l.host, l.pid,
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - l.since) * 1000)::bigint, l.term, l.slot,
       pg_catalog.current_database(),
       pg_catalog.ceil(pg_catalog.date_part('epoch', l.until - pg_catalog.clock_timestamp()) * 1000)::bigint, l.traceparent
FROM holdfast.held_leases l
LEFT JOIN holdfast.labels lb ON lb.key = l.key AND lb.space = l.space

-- name: list_past
-- What was recorded in the last $1 ms (NULL: ever), one row per key: label, how often it was
-- acquired, ms since it was last seen, and by whom. It includes the slots of semaphores, under the
-- label of the semaphore.
WITH bound AS (
    SELECT coalesce(pg_catalog.now() - pg_catalog.make_interval(secs => $1::bigint / 1000.0), '-infinity') AS since
), happened AS (
    SELECT e.space, e.key, count(*) FILTER (WHERE e.event = 'acquired') AS times, max(e.at) AS at, max(e.id) AS id
    FROM holdfast.events e
    WHERE e.at >= (SELECT b.since FROM bound b)
    GROUP BY e.space, e.key
)
SELECT coalesce(h.space, l.space) AS space, coalesce(h.key, l.key) AS key, l.label, coalesce(h.times, 0),
       greatest(0, extract(epoch FROM pg_catalog.clock_timestamp() - greatest(h.at, l.seen)) * 1000)::bigint,
       e.shared, e.application, e.host, e.pid
FROM happened h
FULL JOIN holdfast.labels l ON l.key = h.key AND l.space = h.space
LEFT JOIN holdfast.events e ON e.id = h.id
WHERE h.key IS NOT NULL OR l.seen >= (SELECT b.since FROM bound b)
ORDER BY 1, 2

-- ---- sessions -----------------------------------------------------------------------------------

-- name: connect
-- $1 the pid that libpq knows, $2 whether a pooler keeps the session for us, @settings@ a list of
-- set_config calls. Behind a pooler in transaction mode nothing is set, because the next client
-- would get the settings. All names are qualified, because the role's own search_path is still in
-- force. The session's caches are empty, so it calls no function that runs a query of its own.
SELECT pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::pg_catalog.int4,
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.to_regnamespace('holdfast') IS NOT NULL,
       CASE WHEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('holdfast')::pg_catalog.oid, 'USAGE')
                 AND pg_catalog.to_regprocedure('holdfast.schema_version()') IS NOT NULL
            THEN coalesce(pg_catalog.has_table_privilege(
                         pg_catalog.to_regclass('holdfast.holders')::pg_catalog.oid, 'SELECT')::pg_catalog.int4
                     OPERATOR(pg_catalog.+) pg_catalog.has_table_privilege(
                         pg_catalog.to_regclass('holdfast.holders')::pg_catalog.oid, 'INSERT')::pg_catalog.int4, 0)
            ELSE 0 END, -- 1: may read the records, 2: may also write them
       pg_catalog.current_setting('max_locks_per_transaction'),
       pg_catalog.current_setting('max_connections'),
       pg_catalog.current_setting('max_prepared_transactions'),
       pg_catalog.current_setting('statement_timeout'),
       pg_catalog.current_setting('lock_timeout'),
       pg_catalog.current_setting('idle_in_transaction_session_timeout'),
       pg_catalog.current_setting('transaction_timeout', true),
       (SELECT s.system_identifier FROM pg_catalog.pg_control_system() AS s),
       CASE WHEN NOT pg_catalog.pg_is_in_recovery()
            THEN pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_flush_lsn()), 8) END,
       CASE WHEN NOT pg_catalog.pg_is_in_recovery()
            THEN pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), '0/0')::pg_catalog.int8 END,
       CASE WHEN $2::pg_catalog.bool OR pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::pg_catalog.int4
            THEN ARRAY[@settings@] END

-- name: lift_token
SELECT holdfast.lift_token($1::bigint)

-- name: open_session
SELECT v, o.epoch, o.leftovers, pg_catalog.pg_backend_pid(),
       CASE WHEN o.epoch IS NOT NULL THEN pg_catalog.pg_sequence_last_value('holdfast.token') END
FROM holdfast.schema_version() AS v
LEFT JOIN LATERAL (SELECT * FROM holdfast.open_session($1::text, $2::text, $3::int) WHERE v = $4::int) AS o ON true

-- name: synchronous_names
SELECT pg_catalog.current_setting('synchronous_standby_names')

-- ---- transactions -------------------------------------------------------------------------------

-- name: tx_lock_one prepared
SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)

-- name: tx_lock
SELECT pg_catalog.count(CASE
    WHEN w.space = 0 THEN pg_catalog.pg_advisory_xact_lock(w.key)::text
    ELSE pg_catalog.pg_advisory_xact_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)::text
END)
FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)

-- name: tx_keep_one prepared
SELECT pg_catalog.pg_advisory_lock($1::bigint)

-- name: tx_keep_unleased prepared
-- tx_keep_one where keys may be leased: fails then, before the session has anything. Its snapshot is
-- younger than the transaction's lock.
SELECT CASE WHEN pg_catalog.pg_relation_size('holdfast.leases') > 0
            THEN holdfast.refuse_leased(ARRAY[$1::bigint], ARRAY[0::smallint]) END,
       pg_catalog.pg_advisory_lock($1::bigint)

-- name: tx_refuse_leased
-- For several keys, in front of tx_keep.
SELECT CASE WHEN pg_catalog.pg_relation_size('holdfast.leases') > 0
            THEN holdfast.refuse_leased($1::bigint[], $2::smallint[]) END

-- name: tx_keep
SELECT pg_catalog.count(CASE
    WHEN w.space = 0 THEN pg_catalog.pg_advisory_lock(w.key)::text
    ELSE pg_catalog.pg_advisory_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)::text
END)
FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)

-- name: tx_hand_over_one prepared
-- tx_hand_over for one bigint key. Columns are evaluated in their order.
SELECT pg_catalog.pg_backend_pid(), CASE WHEN $2::boolean THEN pg_catalog.pg_current_xact_id()::text END,
       pg_catalog.pg_advisory_xact_lock($1::bigint), pg_catalog.pg_advisory_unlock($1::bigint)

-- name: tx_hand_over
-- From the session to the transaction, which COMMIT and ROLLBACK free. The first statement with a
-- snapshot: it is younger than the locks. $3 whether the transaction writes and needs an id.
SELECT pg_catalog.pg_backend_pid(),
       CASE WHEN $3::boolean THEN pg_catalog.pg_current_xact_id()::text END,
       pg_catalog.count(handed.taken), pg_catalog.count(handed.given)
FROM (SELECT CASE
                 WHEN w.space = 0 THEN pg_catalog.pg_advisory_xact_lock(w.key)::text
                 ELSE pg_catalog.pg_advisory_xact_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)::text
             END AS taken,
             CASE
                 WHEN w.space = 0 THEN pg_catalog.pg_advisory_unlock(w.key)
                 ELSE pg_catalog.pg_advisory_unlock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
             END AS given
      FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)
      OFFSET 0) AS handed

-- name: look_at_backend
-- Is there a backend $1 that started at $2, as tx_generation tells it, and is it at work, not waiting
-- for its client? Asked of another session. A role that may not see that takes it to be at work.
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 0,
       pg_catalog.count(*) FILTER (WHERE (a.state OPERATOR(pg_catalog.~~) 'idle%') IS NOT TRUE
           AND (a.wait_event_type OPERATOR(pg_catalog.=) 'Client') IS NOT TRUE) OPERATOR(pg_catalog.>) 0
FROM pg_catalog.pg_stat_get_activity($1::pg_catalog.int4) AS a
WHERE EXTRACT(epoch FROM a.backend_start)::pg_catalog.text OPERATOR(pg_catalog.=) $2

-- name: tx_generation
-- Changes when the server crashes (its statistics start anew) and when a standby takes over (on
-- another timeline, even if it began as a cold copy with the same statistics). And which backend
-- this is, for good.
SELECT w.stats_reset::pg_catalog.text OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||)
       pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8),
       pg_catalog.pg_backend_pid(),
       (SELECT EXTRACT(epoch FROM a.backend_start)::pg_catalog.text
        FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) AS a)
FROM pg_catalog.pg_stat_wal w

-- name: tx_marker
-- Has attempt $1 committed, and is its transaction ($3, in backend $2) still under way? Where
-- COMMIT went before the id was known, as long as that backend lives, by its start $4, it may be.
SELECT EXISTS (SELECT FROM holdfast.commits c WHERE c.attempt = $1::pg_catalog.uuid),
       EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
               WHERE a.pid = $2::pg_catalog.int4
                 AND (a.backend_xid = $3::pg_catalog.xid8::pg_catalog.xid
                      OR EXTRACT(epoch FROM a.backend_start)::pg_catalog.text = $4::pg_catalog.text))

-- name: tx_confirm
-- A commit as durable as the caller's are: when it is answered, so are all before it.
BEGIN;
SET LOCAL synchronous_commit TO DEFAULT;
SELECT pg_catalog.pg_logical_emit_message(true, 'holdfast', 'outcome');
COMMIT

-- name: tx_status
-- What became of transaction $1, and tx_generation in the same breath: 'committed' counts only
-- while that is what it was.
SELECT coalesce(pg_catalog.pg_xact_status($1::pg_catalog.xid8), 'unknown'),
       w.stats_reset::pg_catalog.text OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||)
       pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
FROM pg_catalog.pg_stat_wal w

-- name: tx_end_backend
-- By pid and transaction id together: a pid alone may be somebody else's by now. By its start $3 where
-- the transaction's id is not known.
SELECT pg_catalog.pg_terminate_backend(a.pid)
FROM pg_catalog.pg_stat_activity a
WHERE a.pid = $1::pg_catalog.int4
  AND (a.backend_xid = $2::pg_catalog.xid8::pg_catalog.xid
       OR EXTRACT(epoch FROM a.backend_start)::pg_catalog.text = $3::pg_catalog.text)

-- name: tx_end_forgotten
-- tx_end_backend for one that does nothing but wait for its client.
SELECT pg_catalog.pg_terminate_backend(a.pid)
FROM pg_catalog.pg_stat_activity a
WHERE a.pid = $1::pg_catalog.int4
  AND (a.backend_xid = $2::pg_catalog.xid8::pg_catalog.xid
       OR EXTRACT(epoch FROM a.backend_start)::pg_catalog.text = $3::pg_catalog.text)
  AND a.wait_event = 'ClientRead'

-- ---- a caller's connection ----------------------------------------------------------------------

-- name: borrow_try
SELECT pg_catalog.current_setting('transaction_isolation'), coalesce((
    SELECT w.i
    FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) WITH ORDINALITY AS w (key, space, i)
    WHERE NOT CASE
        WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_try_advisory_xact_lock_shared(w.key)
        WHEN w.space = 0 THEN pg_catalog.pg_try_advisory_xact_lock(w.key)
        WHEN $3::boolean
            THEN pg_catalog.pg_try_advisory_xact_lock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
        ELSE pg_catalog.pg_try_advisory_xact_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)
    END
    LIMIT 1), 0)

-- name: borrow_may_be_leased
-- Does the caller's role have what tells whether a key is leased, and was any ever leased?
SELECT coalesce(pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('holdfast')::oid, 'USAGE'), false)
       AND coalesce(pg_catalog.pg_relation_size(pg_catalog.to_regclass('holdfast.leases')), 0) > 0

-- name: borrow_wait
SELECT count(CASE
    WHEN w.space = 0 AND $3::boolean THEN pg_catalog.pg_advisory_xact_lock_shared(w.key)::text
    WHEN w.space = 0 THEN pg_catalog.pg_advisory_xact_lock(w.key)::text
    WHEN $3::boolean
        THEN pg_catalog.pg_advisory_xact_lock_shared((w.key >> 32)::int, ((w.key << 32) >> 32)::int)::text
    ELSE pg_catalog.pg_advisory_xact_lock((w.key >> 32)::int, ((w.key << 32) >> 32)::int)::text
END)
FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::smallint[])) AS w (key, space)

-- ---- doctor -------------------------------------------------------------------------------------

-- name: examine
-- Everything except timeouts and the clock, in one row. Columns as in enum fact of examine.c.
SELECT pg_catalog.quote_ident(current_user),
       pg_catalog.quote_ident(pg_catalog.current_database()),
       pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'),
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),
       pg_catalog.pg_is_in_recovery(),
       (SELECT s.reset_val = 'on' FROM pg_catalog.pg_settings s WHERE s.name = 'default_transaction_read_only'),
       -- Fast-path and predicate locks are not in the table that advisory locks may fill.
       (SELECT count(*) FROM pg_catalog.pg_locks l WHERE NOT l.fastpath AND l.mode <> 'SIReadLock'),
       pg_catalog.inet_client_addr() IS NULL,
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_keepalives_idle'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_keepalives_interval'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_keepalives_count'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_user_timeout'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'client_connection_check_interval'),
       -- The schema's version; 0: there is no schema, -1: Holdfast did not make it.
       CASE WHEN pg_catalog.to_regnamespace('holdfast') IS NULL THEN 0
            ELSE coalesce((SELECT pg_catalog.substring(p.prosrc, '(\d+)')::int FROM pg_catalog.pg_proc p
                           WHERE p.pronamespace = pg_catalog.to_regnamespace('holdfast')::oid
                             AND p.proname = 'schema_version'), -1) END,
       CASE WHEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('holdfast')::oid, 'USAGE')
            THEN coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass('holdfast.holders')::oid, 'INSERT'), false)
            ELSE false END,
       pg_catalog.quote_literal(pg_catalog.quote_ident(current_user)),
       -- What sessions of this role start with; ours may have set another value.
       (SELECT s.reset_val FROM pg_catalog.pg_settings s WHERE s.name = 'synchronous_commit'),
       (SELECT s.setting <> '' FROM pg_catalog.pg_settings s WHERE s.name = 'synchronous_standby_names'),
       -- Standbys that follow; a subscriber of logical replication is none.
       (SELECT count(*) FROM pg_catalog.pg_stat_replication r
        WHERE r.state IN ('streaming', 'catchup')
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots s
                          WHERE s.active_pid = r.pid AND s.slot_type = 'logical'))

-- name: examine_adopted
-- Relations of other programs that shared tables were adopted from: how many, which of them have lost
-- their trigger, and how many are gone.
SELECT count(*),
       coalesce(pg_catalog.string_agg(f.followed::text, ', ') FILTER (WHERE c.oid IS NOT NULL AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_trigger t
           WHERE t.tgrelid = f.followed AND t.tgname = 'holdfast_follow' AND t.tgenabled IN ('O', 'A'))), ''),
       count(*) FILTER (WHERE c.oid IS NULL)
FROM (SELECT DISTINCT r.followed FROM holdfast.table_registry r WHERE r.followed IS NOT NULL) f
LEFT JOIN pg_catalog.pg_class c ON c.oid = f.followed

-- name: examine_port
SELECT pg_catalog.inet_client_port()

-- name: examine_clock
SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint

-- name: examine_timeouts
-- The timeouts that sessions of this role in this database start with. Our own SET hides them in
-- setting and source, but not in reset_val. The source is looked up in the server's order.
SELECT s.name,
       CASE WHEN v.ms % 3600000 = 0 THEN v.ms / 3600000 || ' h'
            WHEN v.ms % 60000 = 0 THEN v.ms / 60000 || ' min'
            WHEN v.ms % 1000 = 0 THEN v.ms / 1000 || ' s'
            ELSE v.ms || ' ms' END,
       coalesce((
           SELECT CASE WHEN r.setrole <> 0 AND r.setdatabase <> 0 THEN 'role and database'
                       WHEN r.setrole <> 0 THEN 'role'
                       WHEN r.setdatabase <> 0 THEN 'database'
                       ELSE 'all roles' END
           FROM pg_catalog.pg_db_role_setting r, pg_catalog.unnest(r.setconfig) AS c (entry)
           WHERE pg_catalog.lower(pg_catalog.split_part(c.entry, '=', 1)) = s.name
             AND r.setrole IN (0, (SELECT u.oid FROM pg_catalog.pg_roles u WHERE u.rolname = session_user))
             AND r.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d
                                       WHERE d.datname = pg_catalog.current_database()))
           ORDER BY r.setrole <> 0 DESC, r.setdatabase <> 0 DESC
           LIMIT 1), 'server or connection')
FROM pg_catalog.pg_settings s, LATERAL (SELECT s.reset_val::bigint) AS v (ms)
WHERE s.name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout',
                 'idle_in_transaction_session_timeout', 'transaction_timeout')
  AND s.reset_val <> '0'
ORDER BY s.name

-- ---- short ones, each sent as one line ----------------------------------------------------------

-- lines: joined

-- name: ping
SELECT 1

-- name: schema_version
SELECT holdfast.schema_version()

-- name: has_schema
-- Is there a schema of that name, and is it ours?
SELECT pg_catalog.to_regnamespace('holdfast') IS NOT NULL,
    pg_catalog.to_regprocedure('holdfast.schema_version()') IS NOT NULL

-- name: install_begin
-- The lock makes installers take turns.
BEGIN;
SET LOCAL synchronous_commit = on;
SET LOCAL search_path = '';
SELECT pg_catalog.pg_advisory_xact_lock(1213156420, 0)

-- name: close_session
SELECT holdfast.close_session()

-- name: drop_leftovers
SELECT holdfast.drop_leftovers()

-- name: cancel_backend
-- Backend $1 if it is the one that started at $2: on another server the pid is somebody else's.
SELECT pg_catalog.pg_cancel_backend(a.pid)
FROM pg_catalog.pg_stat_activity a
WHERE a.pid = $1::pg_catalog.int4 AND EXTRACT(epoch FROM a.backend_start)::pg_catalog.text = $2::pg_catalog.text

-- name: list_granted
-- All advisory locks of the database that are held, with the edges of the wait-for graph.
SELECT l.classid::bigint, l.objid::bigint, l.objsubid
FROM pg_catalog.pg_locks l
WHERE l.locktype = 'advisory' AND l.granted
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d
    WHERE d.datname = pg_catalog.current_database())

-- name: tx_bounds
-- The time that is left bounds the wait: lock_timeout for each label, statement_timeout for all.
SELECT pg_catalog.set_config('lock_timeout', $1, true),
    pg_catalog.set_config('statement_timeout', $1, true)

-- name: tx_bounds_pooled
-- Our own connections look for a dead client anyway; one that comes from a pooler has to be told
-- to.
SELECT pg_catalog.set_config('lock_timeout', $1, true),
    pg_catalog.set_config('statement_timeout', $1, true),
    pg_catalog.set_config('client_connection_check_interval', '1000', true)

-- name: tx_begun
-- Who runs the transaction, and its id.
SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_current_xact_id()

-- name: tx_begun_read_only
SELECT pg_catalog.pg_backend_pid(), NULL

-- name: tx_timeouts
-- The caller's own, for the rest of the transaction.
SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true)

-- name: tx_timeouts_17
SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true),
       pg_catalog.set_config('transaction_timeout', $4, true)

-- name: tx_bound
-- $1 milliseconds are left, unless the caller's own timeout is shorter.
SELECT pg_catalog.set_config('statement_timeout', pg_catalog.ceil(least($1::pg_catalog.float8, nullif(
    EXTRACT(epoch FROM pg_catalog.current_setting('statement_timeout')::pg_catalog.interval) * 1000, 0)))::text, true)

-- name: tx_same
-- Fails unless this is transaction $1, or for NULL one that has no id because it wrote nothing.
SELECT 1 / CASE WHEN pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text
                     IS NOT DISTINCT FROM $1::pg_catalog.text
                THEN 1 ELSE 0 END

-- name: unlock_all
SELECT pg_catalog.pg_advisory_unlock_all()

-- name: tx_mark
INSERT INTO holdfast.commits (attempt) VALUES ($1)

-- name: borrow_timeouts
-- The caller's own, to come back.
SELECT pg_catalog.current_setting('statement_timeout'), pg_catalog.current_setting('lock_timeout'),
    pg_catalog.current_setting('transaction_isolation')

-- name: borrow_bound
SELECT pg_catalog.set_config('statement_timeout', $1, true),
    pg_catalog.set_config('lock_timeout', '0', true)

-- name: borrow_restore
SELECT pg_catalog.set_config('statement_timeout', $1, true),
    pg_catalog.set_config('lock_timeout', $2, true)

-- ---- proving that locks work here --------------------------------------------------------------

-- name: prove_pid
SELECT pg_catalog.pg_backend_pid()

-- name: prove_server
SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_postmaster_start_time()::text, pg_catalog.pg_backend_pid()

-- name: prove_wait
SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)

-- name: prove_take
SELECT pg_catalog.pg_advisory_lock($1::bigint)

-- name: prove_leave
SELECT pg_catalog.pg_advisory_unlock($1::bigint)

-- name: prove_try
SELECT pg_catalog.pg_try_advisory_xact_lock($1::bigint)

-- name: prove_view
SELECT l.pid
FROM pg_catalog.pg_locks AS l
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND ((l.classid::bigint << 32) | l.objid::bigint) = $1::bigint

-- name: prove_notify
SELECT pg_catalog.pg_notify('hf_proof', '')
