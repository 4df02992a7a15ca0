-- Has attempt $1 committed, and is its transaction ($3, in backend $2) still under way? Where COMMIT went
-- before the id was known, as long as that backend lives, by its start $4, it may be.
SELECT EXISTS (SELECT FROM holdfast.commits c WHERE c.attempt = $1::pg_catalog.uuid),
       EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
               WHERE a.pid = $2::pg_catalog.int4
                 AND (a.backend_xid = $3::pg_catalog.xid8::pg_catalog.xid
                      OR EXTRACT(epoch FROM a.backend_start)::pg_catalog.text = $4::pg_catalog.text))
