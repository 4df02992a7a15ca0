-- Roles that may do a part of what grant_use allows; contrib/roles.sql has some. Functions that act
-- with the rights of the schema's owner are no longer everybody's who may use the schema, and who
-- holds locks needs no right to delete what others have recorded.

-- Deletes what is old, at most once an hour for all processes: due is empty otherwise. Looking first
-- saves the lock of the row, which is a write, wherever it is not due.
CREATE FUNCTION holdfast.housekeep() RETURNS void
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
    )
    DELETE FROM holdfast.sessions
    WHERE EXISTS (SELECT FROM due) AND backend_pid NOT IN (SELECT pid FROM alive)
$$;

REVOKE EXECUTE ON FUNCTION holdfast.fence(text, bigint), holdfast.lift_token(bigint), holdfast.mint_id(),
    holdfast.find_table(text), holdfast.register_table(text, bigint),
    holdfast.follow_id(regclass, text, text, text, bigint), holdfast.follow_refs(), holdfast.fill_id()
FROM PUBLIC;

CREATE OR REPLACE FUNCTION holdfast.grant_use(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA holdfast TO %s', role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.labels, holdfast.sessions, holdfast.holders,
                    holdfast.waiters, holdfast.events, holdfast.schedules, holdfast.commits,
                    holdfast.table_registry, holdfast.table_context_refs, holdfast.machines,
                    holdfast.appends, holdfast.contention TO %s', role);
    EXECUTE format('GRANT SELECT ON holdfast.fences, holdfast.boot TO %s', role);
    EXECUTE format('GRANT USAGE ON SEQUENCE holdfast.token TO %s', role);
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO %s', role);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION holdfast.grant_use(regrole) FROM %s', role);
END $$;

-- Those who were let in before stay in.
DO $$
DECLARE
    grantee oid;
BEGIN
    FOR grantee IN SELECT DISTINCT g.grantee FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) g
                   WHERE c.oid = 'holdfast.holders'::pg_catalog.regclass AND g.privilege_type = 'INSERT'
                     AND g.grantee NOT IN (0, c.relowner) LOOP
        PERFORM holdfast.grant_use(grantee);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION holdfast.schema_version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 4';
