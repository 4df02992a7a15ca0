SELECT coalesce(max(wait), 0) + 1 FROM waiters
