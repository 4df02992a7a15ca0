DELETE FROM holders WHERE seat = ?1
