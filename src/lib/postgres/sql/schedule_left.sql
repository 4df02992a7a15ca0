SELECT greatest(0, pg_catalog.ceil(extract(epoch FROM last_start - pg_catalog.clock_timestamp()) * 1000
                                   + $2::float8))::bigint
FROM holdfast.schedules WHERE label = $1::text
