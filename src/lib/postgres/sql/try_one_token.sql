-- The lock first, the token after it.
SELECT got.ok, CASE WHEN got.ok THEN pg_catalog.nextval('holdfast.token') END
FROM (SELECT pg_catalog.pg_try_advisory_lock($1::bigint) AS ok OFFSET 0) AS got
