-- Lock first, token after it, record with it, in one trip. $1 key, $2 shared, $3 slot.
WITH got AS MATERIALIZED (
    SELECT CASE WHEN $2::boolean THEN pg_catalog.pg_try_advisory_lock_shared($1::bigint)
                ELSE pg_catalog.pg_try_advisory_lock($1::bigint) END AS ok
), recorded AS (
    INSERT INTO holdfast.holders AS h (backend_pid, key, space, shared, slot, since, token)
    SELECT pg_catalog.pg_backend_pid(), $1, 0, $2, $3::int, pg_catalog.clock_timestamp(),
           pg_catalog.nextval('holdfast.token')
    FROM got WHERE got.ok
    ON CONFLICT (backend_pid, key, space) DO UPDATE
    SET shared = excluded.shared, slot = excluded.slot, since = excluded.since, token = excluded.token
    RETURNING h.token
)
SELECT got.ok, (SELECT token FROM recorded) FROM got
