SELECT boot_id FROM token
