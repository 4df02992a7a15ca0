DELETE FROM labels
WHERE seen_ms < ?1 - 90 * 86400000
    AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.space = labels.space AND h.key = labels.key)
