INSERT INTO labels (space, key, label, derivation, seen_ms) VALUES (?1, ?2, ?3, ?4, ?5)
