-- $1 the pid that the connection was told, $2 whether a pooler keeps the session for us, $3 and $4
-- settings. Behind a transaction pooler nothing is set: it would stay with the next client.
SELECT pg_catalog.pg_backend_pid() = $1::int,
       pg_catalog.pg_is_in_recovery(),
       coalesce(pg_catalog.obj_description(pg_catalog.to_regnamespace('holdfast')::oid, 'pg_namespace'), ''),
       CASE WHEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('holdfast')::oid, 'USAGE')
            THEN coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass('holdfast.holders')::oid, 'INSERT'), false)
            ELSE false END,
       pg_catalog.current_setting('max_locks_per_transaction')::int
           * (pg_catalog.current_setting('max_connections')::int
              + pg_catalog.current_setting('max_prepared_transactions')::int),
       CASE WHEN $2::boolean OR pg_catalog.pg_backend_pid() = $1::int
            THEN (SELECT count(pg_catalog.set_config(name, setting, false))
                  FROM ROWS FROM (pg_catalog.unnest($3::text[]), pg_catalog.unnest($4::text[])) AS s (name, setting)) END
