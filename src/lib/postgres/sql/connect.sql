-- $1 the pid that the connection was told, $2 whether a pooler keeps the session for us, @SETTINGS@ a
-- list of set_config calls. Behind a transaction pooler nothing is set: it would stay with the next
-- client. This runs under the role's own search_path, hence every name in full; and on a session
-- whose caches are empty, hence no function that is a query of its own.
SELECT pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::pg_catalog.int4,
       pg_catalog.pg_is_in_recovery(),
       pg_catalog.to_regnamespace('holdfast') IS NOT NULL,
       CASE WHEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('holdfast')::pg_catalog.oid, 'USAGE')
            THEN pg_catalog.to_regprocedure('holdfast.schema_version()') IS NOT NULL
                 AND coalesce(pg_catalog.has_table_privilege(
                         pg_catalog.to_regclass('holdfast.holders')::pg_catalog.oid, 'INSERT'), false)
            ELSE false END,
       pg_catalog.current_setting('max_locks_per_transaction'),
       pg_catalog.current_setting('max_connections'),
       pg_catalog.current_setting('max_prepared_transactions'),
       CASE WHEN $2::pg_catalog.bool OR pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::pg_catalog.int4
            THEN ARRAY[@SETTINGS@] END
