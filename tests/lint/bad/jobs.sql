-- SELECT pg_advisory_lock(1);
BEGIN;
SELECT pg_advisory_xact_lock(2000001); -- expect: unregistered-id
SELECT pg_advisory_xact_lock(7, 8); -- expect: unregistered-id
SELECT "pg_catalog"."pg_advisory_xact_lock"(CAST(2000002 AS bigint)); -- expect: unregistered-id
COMMIT;

BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT pg_advisory_xact_lock(51515151); -- expect: snapshot-trap
COMMIT;

CREATE FUNCTION sweep() RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    stray constant bigint := 2000003;
    total bigint;
BEGIN
    SELECT count(*) INTO total FROM jobs;
    PERFORM pg_advisory_xact_lock(51515151); -- expect: lock-after-read
    DELETE FROM jobs;
    PERFORM pg_advisory_xact_lock(stray); -- expect: unregistered-id
    PERFORM pg_advisory_xact_lock(hashtext('sweep')); -- expect: hashtext, unregistered-label
    PERFORM pg_advisory_lock(42424242); -- expect: lock-order
    PERFORM pg_advisory_unlock(42424242); -- expect: unlock-result-ignored
    EXECUTE 'SELECT pg_advisory_xact_lock(hashtext(''other''))'; -- expect: hashtext, unregistered-label
END
$body$;

SELECT pg_try_advisory_xact_lock(id) FROM jobs WHERE state = 'new' LIMIT 1; -- expect: lock-with-limit, unresolved-key
SELECT pg_advisory_unlock(51515151); -- expect: unlock-of-transaction-lock
