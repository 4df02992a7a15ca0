package pool

func Hold(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(42424242)"); err != nil {
		return err
	}
	defer conn.QueryRowContext(ctx, "SELECT pg_advisory_unlock(42424242)").Scan(&freed)
	var got bool
	return tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock(51515151)").Scan(&got)
}
