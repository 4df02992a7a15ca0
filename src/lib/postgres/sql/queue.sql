-- Waits in PostgreSQL's own queue with a transaction lock, at most $4 ms for all keys together, and
-- keeps with a session lock: no timeout can strike between grant and answer. The timeout is caught
-- here, so that it leaves no line in the server's log. Integers only: bound by substitution.
BEGIN ISOLATION LEVEL READ COMMITTED;
DO $queue$
DECLARE
    until timestamptz := pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $4 / 1000.0);
    keys bigint[] := $1;
    spaces smallint[] := $2;
    want_shared boolean := $3;
BEGIN
    FOR i IN 1 .. pg_catalog.cardinality(keys) LOOP
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
EXECUTE $5;
COMMIT
