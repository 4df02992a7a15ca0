// Package sqltest tests Serialize on a driver, which the binding itself does not need.
package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"holdfast"
)

var background = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, err error, wanted ...error) {
	t.Helper()
	for _, want := range wanted {
		if !errors.Is(err, want) {
			t.Fatalf("%v (%T), wanted %v", err, err, want)
		}
	}
}

func setUp(t *testing.T) (*sql.DB, *holdfast.Store) {
	url := os.Getenv("HOLDFAST_TEST_URL")
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	db, err := sql.Open("postgres", url+separator+"sslmode=disable&binary_parameters=yes")
	must(t, err)
	store, err := holdfast.Open(background, url)
	must(t, err)
	t.Cleanup(func() { _ = store.Close(); _ = db.Close() })
	return db, store
}

func begin(t *testing.T, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(background, &sql.TxOptions{Isolation: level})
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// isFree asks the server whether nobody holds the lock.
func isFree(t *testing.T, db *sql.DB, label string, how holdfast.Derivation) bool {
	t.Helper()
	key, err := holdfast.DeriveKey(how, label)
	must(t, err)
	classid, objid := holdfast.SplitKey(key)
	space := map[bool]int{false: 1, true: 2}[how.IsPair()]
	free := false
	must(t, db.QueryRow("select not exists (select from pg_locks where locktype = 'advisory' and objsubid = $1"+
		" and classid::bigint = $2 and objid::bigint = $3)", space, int64(classid), int64(objid)).Scan(&free))
	return free
}

func TestTheLockIsHoldfastsUntilTheTransactionEnds(t *testing.T) {
	db, _ := setUp(t)
	for _, how := range []holdfast.Derivation{holdfast.SHA256, holdfast.Hashtext, holdfast.WithAdvisoryLock} {
		tx := begin(t, db, sql.LevelDefault)
		must(t, holdfast.SerializeAs(background, tx, "Transfer:a", how))
		must(t, holdfast.SerializeAs(background, tx, "Transfer:a", how))
		if isFree(t, db, "Transfer:a", how) {
			t.Fatalf("%v: it is free", how)
		}
		must(t, tx.Commit())
		if !isFree(t, db, "Transfer:a", how) {
			t.Fatalf("%v: it is not free", how)
		}
	}
}

func TestNoUpdateIsLost(t *testing.T) {
	db, store := setUp(t)
	_, err := db.Exec("create table account (balance int not null); insert into account values (0)")
	must(t, err)
	const tasks = 20
	var group sync.WaitGroup
	for task := 0; task < tasks; task++ {
		group.Add(1)
		go func(byHoldfast bool) {
			defer group.Done()
			var err error
			if byHoldfast {
				err = store.Transact(background, holdfast.Labels("Transfer:a"), func(tx *holdfast.Tx) error {
					n := 0
					if err := tx.QueryRow("select balance from account").Scan(&n); err != nil {
						return err
					}
					return tx.Queue("update account set balance = $1", n+1)
				})
			} else {
				err = addOne(db)
			}
			if err != nil {
				t.Error(err)
			}
		}(task%2 == 0)
	}
	group.Wait()
	balance := 0
	must(t, db.QueryRow("select balance from account").Scan(&balance))
	if balance != tasks {
		t.Fatal(balance)
	}
}

func addOne(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := holdfast.Serialize(background, tx, "Transfer:a"); err != nil {
		return err
	}
	n := 0
	if err := tx.QueryRow("select balance from account").Scan(&n); err != nil {
		return err
	}
	if _, err := tx.Exec("update account set balance = $1", n+1); err != nil {
		return err
	}
	return tx.Commit()
}

func TestALevelWithAnOlderSnapshotIsRefused(t *testing.T) {
	db, _ := setUp(t)
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx := begin(t, db, level)
		err := holdfast.Serialize(background, tx, "Transfer:a")
		expect(t, err, holdfast.ErrConfig)
		if failure := new(holdfast.Error); !errors.As(err, &failure) || !strings.Contains(failure.Hint, "Transact") {
			t.Fatalf("%#v", err)
		}
		if !isFree(t, db, "Transfer:a", holdfast.SHA256) {
			t.Fatal("it was acquired all the same")
		}
		must(t, tx.Rollback())
	}
}

func TestWithoutATransactionIsRefused(t *testing.T) {
	db, _ := setUp(t)
	expect(t, holdfast.Serialize(background, db, "Transfer:a"), holdfast.ErrNoTransaction)
	conn, err := db.Conn(background)
	must(t, err)
	defer conn.Close()
	expect(t, holdfast.Serialize(background, conn, "Transfer:a"), holdfast.ErrNoTransaction)
	if !isFree(t, db, "Transfer:a", holdfast.SHA256) {
		t.Fatal("it was acquired all the same")
	}
	_, err = conn.ExecContext(background, "begin")
	must(t, err)
	must(t, holdfast.Serialize(background, conn, "Transfer:a"))
	_, err = conn.ExecContext(background, "commit")
	must(t, err)
}

// likePgx has the methods of a pgx.Tx: QueryRow with a context, and a row of a type of its own.
type likePgx struct{ tx *sql.Tx }

type pgxRow interface{ Scan(to ...any) error }

func (l likePgx) QueryRow(ctx context.Context, query string, args ...any) pgxRow {
	return l.tx.QueryRowContext(ctx, query, args...)
}

type wrongShape struct{}

func (wrongShape) QueryRow(query string, args ...any) pgxRow { return nil }

func TestWhatItTakes(t *testing.T) {
	db, _ := setUp(t)
	tx := begin(t, db, sql.LevelDefault)
	must(t, holdfast.Serialize(background, likePgx{tx}, "Transfer:a"))
	must(t, holdfast.Serialize(background, &likePgx{tx}, "Transfer:a"))
	if isFree(t, db, "Transfer:a", holdfast.SHA256) {
		t.Fatal("it is free")
	}
	for _, wrong := range []any{nil, 5, "tx", (*sql.Tx)(nil), (*likePgx)(nil), wrongShape{}, struct{}{}} {
		expect(t, holdfast.Serialize(background, wrong, "Transfer:a"), holdfast.ErrInvalid)
	}
	expect(t, holdfast.SerializeAs(background, tx, "shop.events", holdfast.Minted), holdfast.ErrInvalid)
}

func TestFailuresOfTheDriver(t *testing.T) {
	db, _ := setUp(t)
	holder := begin(t, db, sql.LevelDefault)
	must(t, holdfast.Serialize(background, holder, "Transfer:a"))
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	expect(t, holdfast.Serialize(ctx, begin(t, db, sql.LevelDefault), "Transfer:a"),
		holdfast.ErrInterrupted, context.DeadlineExceeded)

	broken := begin(t, db, sql.LevelDefault)
	if _, err := broken.Exec("select 1/0"); err == nil {
		t.Fatal("one can divide by zero")
	}
	err := holdfast.Serialize(background, broken, "Transfer:a")
	expect(t, err, holdfast.ErrDatabase)
	if cause := new(pq.Error); !errors.As(err, &cause) || cause.Code != "25P02" {
		t.Fatalf("%#v", err)
	}
}
