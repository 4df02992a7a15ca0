WITH alive AS MATERIALIZED (
    SELECT a.pid FROM pg_catalog.pg_stat_get_activity(NULL) a
), events AS (
    DELETE FROM holdfast.events WHERE id IN (
        SELECT id FROM holdfast.events WHERE at < pg_catalog.now() - interval '30 days' LIMIT 20000)
), contention AS (
    DELETE FROM holdfast.contention WHERE at < pg_catalog.now() - interval '30 days'
), commits AS (
    DELETE FROM holdfast.commits WHERE attempt IN (
        SELECT attempt FROM holdfast.commits WHERE at < pg_catalog.now() - interval '1 day' LIMIT 100000)
), labels AS (
    DELETE FROM holdfast.labels WHERE (key, space) IN (
        SELECT key, space FROM holdfast.labels WHERE seen < pg_catalog.now() - interval '90 days' LIMIT 20000)
), holders AS (
    DELETE FROM holdfast.holders WHERE backend_pid NOT IN (SELECT pid FROM alive)
), waiters AS (
    DELETE FROM holdfast.waiters WHERE backend_pid NOT IN (SELECT pid FROM alive)
)
DELETE FROM holdfast.sessions WHERE backend_pid NOT IN (SELECT pid FROM alive)
