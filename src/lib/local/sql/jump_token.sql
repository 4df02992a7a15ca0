-- 2^24: more than could be handed out between two syncs.
UPDATE token SET value = value + 16777216, boot_id = ?1
