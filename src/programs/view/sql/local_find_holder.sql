-- Process $3 as the holder of the key ($1, in space $2), under token $4 (0: any).
SELECT started, pid_space, host, shared
FROM holders
WHERE key = CAST($1 AS INTEGER) AND space = CAST($2 AS INTEGER) AND pid = CAST($3 AS INTEGER)
  AND (CAST($4 AS INTEGER) = 0 OR EXISTS (
      SELECT 1 FROM holders r WHERE r.pid = CAST($3 AS INTEGER) AND r.token = CAST($4 AS INTEGER)))
