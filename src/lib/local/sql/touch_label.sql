UPDATE labels SET seen_ms = ?3 WHERE space = ?1 AND key = ?2
