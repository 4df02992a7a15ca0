DELETE FROM contention
WHERE at_ms < ?1 - 30 * 86400000
