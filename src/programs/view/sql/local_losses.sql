-- Losses since $1, by the minute of Unix time.
SELECT at_ms / 60000, count(*)
FROM events
WHERE event = 'lost' AND at_ms > CAST($1 AS INTEGER)
GROUP BY 1
