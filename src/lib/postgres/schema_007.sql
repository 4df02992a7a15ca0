-- Tracing: a holder's record has the span of its hold, so that the span of a wait can link to it.

ALTER TABLE holdfast.holders ADD COLUMN traceparent text
    CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$');
ALTER TABLE holdfast.leases ADD COLUMN traceparent text
    CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$');

CREATE OR REPLACE VIEW holdfast.held_leases AS
SELECT l.key, l.space, l.shared, l.slot, l.term, l.since, t.until, t.application, t.host, t.pid, t.username, l.traceparent
FROM holdfast.leases l JOIN holdfast.tenures t ON t.id = l.tenure
WHERE t.until > pg_catalog.clock_timestamp();

-- take_leases for leases that are traced. They are committed together with their traceparent.
CREATE FUNCTION holdfast.take_traced_leases(traceparent text, tenure uuid, is_new boolean, ms int, number bigint,
                                            keys bigint[], spaces smallint[], slots int[], want_shared boolean,
                                            seen bigint, application text, host text, pid int, ask bigint DEFAULT NULL,
                                            OUT blocked int, OUT left_ms bigint, OUT term bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    SELECT t.blocked, t.left_ms, t.term INTO take_traced_leases.blocked, take_traced_leases.left_ms, take_traced_leases.term
    FROM holdfast.take_leases($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) t;
    IF take_traced_leases.blocked = 0 THEN
        UPDATE holdfast.leases l SET traceparent = $1 WHERE l.term = take_traced_leases.term;
    END IF;
END $$;

-- Who holds what. traceparent: the span of the hold, if it is traced. All else is as before.
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
       NULL::timestamptz AS until,
       (SELECT h.traceparent FROM holdfast.holders h
        WHERE h.backend_pid = l.pid AND h.key = l.key AND h.space = l.space AND h.token = l.token) AS traceparent
FROM holdfast.seen_locks l
WHERE l.granted AND NOT (l.space = 0 AND l.key = ANY (SELECT * FROM asks))
UNION ALL
SELECT l.key, CASE l.space WHEN 0 THEN 'bigint' ELSE 'pair' END, n.label, n.derivation,
       coalesce(nullif(t.cluster, '') || '/', '') || t.database || '.' || t.table_name,
       CASE WHEN l.shared THEN 'shared' ELSE 'exclusive' END, NULL, l.application,
       l.username, NULL, l.host, l.pid, l.since, l.since, l.term, l.slot, NULL, l.until, l.traceparent
FROM holdfast.held_leases l
LEFT JOIN holdfast.labels n ON n.key = l.key AND n.space = l.space
LEFT JOIN holdfast.table_registry t ON t.advisory_id = l.key AND l.space = 0;

-- ---- who may use it -----------------------------------------------------------------------------

REVOKE EXECUTE ON FUNCTION holdfast.take_traced_leases(text, uuid, boolean, int, bigint, bigint[], smallint[], int[],
                                                       boolean, bigint, text, text, int, bigint) FROM PUBLIC;

-- Those who may take leases may take these.
DO $$
DECLARE
    grantee oid;
BEGIN
    FOR grantee IN SELECT DISTINCT g.grantee FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) g
                   WHERE p.proname = 'take_leases' AND p.pronamespace = 'holdfast'::pg_catalog.regnamespace
                     AND g.grantee NOT IN (0, p.proowner) LOOP
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION holdfast.take_traced_leases TO %s', grantee::pg_catalog.regrole);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION holdfast.schema_version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 7';
