package jobs

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/allisson/go-pglock/v2"
)

const reportLock int64 = 42424242
const strayLock = 1234567

func Stray(ctx context.Context, db *sql.DB) error {
	var got bool
	row := db.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", strayLock) // expect: unregistered-id
	return row.Scan(&got)
}

func Formatted(db *sql.DB) error {
	_, err := db.Exec(fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", strayLock)) // expect: unregistered-id
	return err
}

func Report(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", reportLock); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, reportLock) // expect: unlock-result-ignored
	return err
}

func Trap(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(51515151)") // expect: snapshot-trap
	return err
}

func Order(ctx context.Context, tx *sql.Tx) {
	tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(51515151)")
	tx.ExecContext(ctx, "SELECT pg_advisory_lock(42424242)") // expect: lock-order
}

func Wrapped(ctx context.Context, db *sql.DB) {
	lock, _ := pglock.NewLock(ctx, 31337, db) // expect: unregistered-id
	lock.WaitAndLock(ctx)
}
