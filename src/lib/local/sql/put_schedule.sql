INSERT OR REPLACE INTO schedules (label, last_start_ms) VALUES (?1, ?2)
