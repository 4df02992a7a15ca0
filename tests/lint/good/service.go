package jobs

// SELECT pg_advisory_lock(1)

const reportLock int64 = 42424242

func Report(ctx context.Context, conn *sql.Conn) (err error) {
	if _, err = conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", reportLock); err != nil {
		return fmt.Errorf("cannot pg_advisory_lock(%d): %w", reportLock, err)
	}
	var freed bool
	err = conn.QueryRowContext(ctx, `SELECT pg_advisory_unlock($1)`, reportLock).Scan(&freed)
	return err
}

func InOrder(ctx context.Context, tx *sql.Tx) {
	tx.ExecContext(ctx, "SELECT pg_advisory_lock(42424242)")
	tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(51515151)")
}

func LockedFirst(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", reportLock); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	return work(tx, err)
}
