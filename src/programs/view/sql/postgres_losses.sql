-- Losses of the last day, by the minute of Unix time.
SELECT floor(extract(epoch FROM e.at) / 60)::bigint, count(*)
FROM holdfast.events e
WHERE e.event = 'lost' AND e.at > pg_catalog.now() - interval '1 day'
GROUP BY 1
