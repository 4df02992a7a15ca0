// Package pgxtest tests Serialize on transactions of pgx, which the binding itself does not need.
package pgxtest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v4"

	"holdfast"
)

var background = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(background, os.Getenv("HOLDFAST_TEST_URL"))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(background) })
	return conn
}

func TestItIsRefusedWhereItWouldProtectNothing(t *testing.T) {
	conn := connect(t)
	if err := holdfast.Serialize(background, conn, "Transfer:a"); !errors.Is(err, holdfast.ErrNoTransaction) {
		t.Fatal(err)
	}
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		tx, err := conn.BeginTx(background, pgx.TxOptions{IsoLevel: level})
		must(t, err)
		if err := holdfast.Serialize(background, tx, "Transfer:a"); !errors.Is(err, holdfast.ErrConfig) {
			t.Fatal(level, err)
		}
		must(t, tx.Rollback(background))
	}
}

func increment(conn *pgx.Conn) error {
	tx, err := conn.Begin(background)
	if err != nil {
		return err
	}
	if err := holdfast.Serialize(background, tx, "Counter"); err != nil {
		return err
	}
	var value int
	if err := tx.QueryRow(background, "select value from pgx_counter").Scan(&value); err != nil {
		return err
	}
	if _, err := tx.Exec(background, "update pgx_counter set value = $1", value+1); err != nil {
		return err
	}
	return tx.Commit(background)
}

func TestNoUpdateIsLost(t *testing.T) {
	conn := connect(t)
	_, err := conn.Exec(background, "create table pgx_counter (value int); insert into pgx_counter values (0)")
	must(t, err)
	var wait sync.WaitGroup
	for i := 0; i < 20; i++ {
		own := connect(t)
		wait.Add(1)
		go func() {
			defer wait.Done()
			if err := increment(own); err != nil {
				t.Error(err)
			}
		}()
	}
	wait.Wait()
	var value int
	must(t, conn.QueryRow(background, "select value from pgx_counter").Scan(&value))
	if value != 20 {
		t.Fatal(value)
	}
}
