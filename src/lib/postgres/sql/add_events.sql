INSERT INTO holdfast.events (at, event, key, space, shared, token, wait_ms, hold_ms, application, host, pid, detail)
SELECT pg_catalog.to_timestamp(e.at_ms / 1000.0), e.event, e.key, e.space, e.shared, e.token,
       nullif(e.wait_ms, -1), nullif(e.hold_ms, -1), $9::text, $10::text, $11::int, nullif(e.detail, '')
FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::bigint[]), pg_catalog.unnest($4::smallint[]), pg_catalog.unnest($5::boolean[]), pg_catalog.unnest($6::bigint[]), pg_catalog.unnest($7::bigint[]), pg_catalog.unnest($8::bigint[]), pg_catalog.unnest($12::text[]))
     AS e (at_ms, event, key, space, shared, token, wait_ms, hold_ms, detail)
