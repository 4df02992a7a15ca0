package pool

func Hold(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "SELECT pg_advisory_lock(42424242)"); err != nil { // expect: lock-on-pool
		return err
	}
	defer db.QueryRowContext(ctx, "SELECT pg_advisory_unlock(42424242)").Scan(&freed)
	tx.ExecContext(ctx, "SELECT pg_try_advisory_xact_lock(51515151)") // expect: try-result-ignored
	return work()
}
