-- The same for one bigint key, which most waits are for.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = $4;
DO $queue$BEGIN
    PERFORM pg_catalog.$3($1);
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    NULL;
END$queue$;
SET LOCAL lock_timeout = 0;
EXECUTE $5;
COMMIT
