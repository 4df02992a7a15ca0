SELECT last_start_ms FROM schedules WHERE label = ?1
