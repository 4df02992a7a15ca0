-- Who holds a key alone knows that whoever else is recorded is gone.
DELETE FROM holders WHERE space = ?1 AND key = ?2 AND seat <> ?3
