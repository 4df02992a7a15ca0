-- Holders whose process cannot be seen from here, old enough to have been removed by themselves.
SELECT space, key, seat FROM holders
WHERE since_ms < ?1 - 3600000 AND (pid_space <> ?2 OR host <> ?3)
