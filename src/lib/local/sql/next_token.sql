UPDATE token SET value = value + 1 RETURNING value
