SELECT got.ok, CASE WHEN got.ok THEN pg_catalog.nextval('holdfast.token') END
FROM (SELECT pg_catalog.pg_try_advisory_lock_shared($1::bigint) AS ok OFFSET 0) AS got
