-- Everything but timeouts and clock, in one row. Columns as enum fact in examine.c.
SELECT pg_catalog.quote_ident(current_user),
       pg_catalog.quote_ident(pg_catalog.current_database()),
       pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'),
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),
       pg_catalog.pg_is_in_recovery(),
       (SELECT s.reset_val = 'on' FROM pg_catalog.pg_settings s WHERE s.name = 'default_transaction_read_only'),
       -- Fast-path and predicate locks live elsewhere than in the table that advisory locks fill.
       (SELECT count(*) FROM pg_catalog.pg_locks l WHERE NOT l.fastpath AND l.mode <> 'SIReadLock'),
       pg_catalog.inet_client_addr() IS NULL,
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_keepalives_idle'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_keepalives_interval'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_keepalives_count'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'tcp_user_timeout'),
       (SELECT s.setting FROM pg_catalog.pg_settings s WHERE s.name = 'client_connection_check_interval'),
       -- The schema's version; 0: there is none, -1: one that Holdfast did not make.
       CASE WHEN pg_catalog.to_regnamespace('holdfast') IS NULL THEN 0
            ELSE coalesce((SELECT pg_catalog.substring(p.prosrc, '(\d+)')::int FROM pg_catalog.pg_proc p
                           WHERE p.pronamespace = pg_catalog.to_regnamespace('holdfast')::oid
                             AND p.proname = 'schema_version'), -1) END,
       CASE WHEN pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('holdfast')::oid, 'USAGE')
            THEN coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass('holdfast.holders')::oid, 'INSERT'), false)
            ELSE false END,
       pg_catalog.quote_literal(pg_catalog.quote_ident(current_user))
