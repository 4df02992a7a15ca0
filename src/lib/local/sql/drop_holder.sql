DELETE FROM holders WHERE space = ?1 AND key = ?2 AND seat = ?3
