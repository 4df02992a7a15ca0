-- Roles for the users of Holdfast, each with what its commands need and nothing else. Nobody logs in
-- as one of them: they are granted to the users that do.
--
--   holdfast init                                  as the owner of the database
--   psql -f roles.sql DATABASE                     as a superuser; again after each `holdfast init`
--   CREATE ROLE cron LOGIN IN ROLE holdfast_locker
--
-- With a network it also makes room for it, as a schema of the user who ingests into it:
--
--   psql -v network=testnet -v ingester=ann -f roles.sql DATABASE
--
-- What no role can be refused: whoever may connect to a database can take its advisory locks, and so
-- keep others waiting. docs/threats.md says more.

\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;
BEGIN;

SELECT pg_catalog.format('CREATE ROLE %I NOLOGIN', r.name)
FROM pg_catalog.unnest(ARRAY['holdfast_locker', 'holdfast_transactor', 'holdfast_ingester', 'holdfast_appender',
                             'holdfast_viewer']) AS r (name)
WHERE pg_catalog.to_regrole(r.name) IS NULL
\gexec

GRANT USAGE ON SCHEMA holdfast TO holdfast_locker, holdfast_viewer;

-- locker: run, key, locks, acquiring in the library, and the SQL functions and views of holdfast-sql(7).
-- Names, tokens, schedules and history: it adds to the history, and cannot change or delete it. Who locks
-- by SQL only and needs no names gets by with USAGE on the schema.
GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.sessions, holdfast.holders, holdfast.waiters, holdfast.schedules
TO holdfast_locker;
GRANT SELECT, INSERT, UPDATE ON holdfast.labels TO holdfast_locker;
GRANT SELECT, INSERT ON holdfast.events TO holdfast_locker;
GRANT SELECT ON holdfast.table_registry, holdfast.locks, holdfast.waits, holdfast.held_leases TO holdfast_locker;
GRANT USAGE ON SEQUENCE holdfast.token TO holdfast_locker;
GRANT EXECUTE ON FUNCTION holdfast.lift_token(bigint), holdfast.find_table(text),
    holdfast.take_leases(uuid, boolean, int, bigint, bigint[], smallint[], int[], boolean, bigint, text, text, int, bigint),
    holdfast.take_traced_leases(text, uuid, boolean, int, bigint, bigint[], smallint[], int[], boolean, bigint, text, text,
                                int, bigint),
    holdfast.renew_tenure(uuid), holdfast.release_leases(uuid, bigint[], bigint[], smallint[], int[], text[]),
    holdfast.sweep_leases(uuid, bigint, bigint[]), holdfast.end_tenures(uuid[]) TO holdfast_locker;

-- transactor: tx and hf_transact besides. It adds the marker that proves a commit, and cannot take one
-- away. What tables it may write to is not Holdfast's to say.
GRANT holdfast_locker TO holdfast_transactor;
GRANT SELECT, INSERT ON holdfast.commits TO holdfast_transactor;
GRANT EXECUTE ON FUNCTION holdfast.fence(text, bigint), holdfast.check_lease(text, bigint, text),
    holdfast.check_leases(bigint[], smallint[], bigint[], boolean) TO holdfast_transactor;

-- ingester: ingest, gaps, cursor and retention besides, in schemas that are its user's own.
GRANT holdfast_transactor TO holdfast_ingester;

-- appender: append and table besides, without `table adopt`, which is for the owner of what is adopted.
GRANT holdfast_transactor TO holdfast_appender;
GRANT SELECT, INSERT, UPDATE ON holdfast.table_registry TO holdfast_appender;
GRANT SELECT, INSERT, DELETE ON holdfast.table_context_refs TO holdfast_appender;
GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.appends TO holdfast_appender;
GRANT SELECT, UPDATE ON holdfast.machines TO holdfast_appender;
GRANT EXECUTE ON FUNCTION holdfast.register_table(text, bigint), holdfast.mint_id() TO holdfast_appender;

-- viewer: locks, top, serve, doctor, registry seen and ingest status. It reads, and adds to the history
-- of contention that serve keeps. pg_read_all_stats: it sees since when and from where all sessions hold
-- locks, and with --show-queries their statements. To end holders it needs pg_signal_backend as well.
GRANT SELECT ON holdfast.labels, holdfast.sessions, holdfast.holders, holdfast.waiters, holdfast.events,
    holdfast.schedules, holdfast.contention, holdfast.table_registry, holdfast.table_context_refs,
    holdfast.appends, holdfast.locks, holdfast.waits, holdfast.held_leases TO holdfast_viewer;
GRANT INSERT, UPDATE ON holdfast.contention TO holdfast_viewer;
GRANT pg_read_all_stats TO holdfast_viewer;

\if :{?network}
SELECT 'ingest_' || :'network' AS network_schema
\gset
CREATE SCHEMA IF NOT EXISTS :"network_schema" AUTHORIZATION :"ingester";
GRANT holdfast_ingester TO :"ingester";
GRANT USAGE ON SCHEMA :"network_schema" TO holdfast_viewer;
GRANT SELECT ON ALL TABLES IN SCHEMA :"network_schema" TO holdfast_viewer;
ALTER DEFAULT PRIVILEGES FOR ROLE :"ingester" IN SCHEMA :"network_schema" GRANT SELECT ON TABLES TO holdfast_viewer;
\endif

COMMIT;
