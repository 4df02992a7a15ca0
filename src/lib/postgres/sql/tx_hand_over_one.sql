-- tx_hand_over for one bigint key. Columns are evaluated in their order.
SELECT pg_catalog.pg_backend_pid(), CASE WHEN $2::boolean THEN pg_catalog.pg_current_xact_id()::text END,
       pg_catalog.pg_advisory_xact_lock($1::bigint), pg_catalog.pg_advisory_unlock($1::bigint)
