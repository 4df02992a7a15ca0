DELETE FROM waiters WHERE wait = ?1
