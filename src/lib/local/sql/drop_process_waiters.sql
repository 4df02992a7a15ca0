DELETE FROM waiters WHERE pid = ?1 AND started = ?2 AND pid_space = ?3 AND host = ?4
