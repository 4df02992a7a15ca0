SELECT label, seen_ms FROM labels WHERE space = ?1 AND key = ?2
