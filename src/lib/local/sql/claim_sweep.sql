-- A clock that was set back does not stop the sweeping.
UPDATE token SET swept_ms = ?1
WHERE swept_ms < ?1 - 3600000 OR swept_ms > ?1 + 3600000
RETURNING 1
