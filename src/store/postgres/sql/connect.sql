-- $1 the pid that the connection was told, $2 whether a pooler keeps the session for us, $3 and $4
-- settings. Behind a transaction pooler nothing is set: it would stay with the next client. This
-- runs under the role's own search_path, hence every name in full.
SELECT pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::pg_catalog.int4,
       pg_catalog.pg_is_in_recovery(),
       coalesce(pg_catalog.obj_description(pg_catalog.to_regnamespace('holdfast')::pg_catalog.oid, 'pg_namespace'), ''),
       CASE WHEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('holdfast')::pg_catalog.oid, 'USAGE')
            THEN coalesce(pg_catalog.has_table_privilege(
                pg_catalog.to_regclass('holdfast.holders')::pg_catalog.oid, 'INSERT'), false)
            ELSE false END,
       pg_catalog.current_setting('max_locks_per_transaction'),
       pg_catalog.current_setting('max_connections'),
       pg_catalog.current_setting('max_prepared_transactions'),
       CASE WHEN $2::pg_catalog.bool OR pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::pg_catalog.int4
            THEN (SELECT pg_catalog.count(pg_catalog.set_config(name, setting, false))
                  FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.text[]), pg_catalog.unnest($4::pg_catalog.text[]))
                       AS s (name, setting)) END
