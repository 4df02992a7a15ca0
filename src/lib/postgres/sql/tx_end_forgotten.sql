-- tx_end_backend for one that does nothing but wait for its client; by its start $3 where the transaction's
-- id is not known.
SELECT pg_catalog.pg_terminate_backend(a.pid)
FROM pg_catalog.pg_stat_activity a
WHERE a.pid = $1::pg_catalog.int4
  AND (a.backend_xid = $2::pg_catalog.xid8::pg_catalog.xid
       OR EXTRACT(epoch FROM a.backend_start)::pg_catalog.text = $3::pg_catalog.text)
  AND a.wait_event = 'ClientRead'
