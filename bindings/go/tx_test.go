package holdfast_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast"
)

// counting makes a table with one row, and returns what the transactions of the tests do to it.
func counting(t testing.TB, store *holdfast.Store) (table string, increment func(*holdfast.Tx) error) {
	t.Helper()
	table = "counter_" + strings.ToLower(strings.NewReplacer("/", "_").Replace(t.Name()))
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		_, err := tx.Exec("create table " + table + " (id int primary key, n int not null)")
		if err == nil {
			err = tx.Queue("insert into "+table+" values ($1, $2)", 1, 0)
		}
		return err
	}))
	return table, func(tx *holdfast.Tx) error {
		n := 0
		if err := tx.QueryRow("select n from " + table + " where id = 1").Scan(&n); err != nil {
			return err
		}
		return tx.Queue("update "+table+" set n = $1 where id = 1", n+1)
	}
}

func count(t testing.TB, store *holdfast.Store, table string) (n int) {
	t.Helper()
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		return tx.QueryRow("select n from " + table).Scan(&n)
	}, holdfast.ReadOnly()))
	return n
}

func TestTxCommitsOnce(t *testing.T) {
	store := open(t)
	table, increment := counting(t, store)
	var told []holdfast.TxStats
	must(t, store.Transact(within(t), holdfast.Labels(label(t, "Count")), increment,
		holdfast.OnStats(func(stats holdfast.TxStats) { told = append(told, stats) })))
	if n := count(t, store, table); n != 1 {
		t.Fatal(n)
	}
	if len(told) != 1 || told[0].Outcome != 0 || told[0].Attempts != 1 || told[0].Label != label(t, "Count") {
		t.Fatalf("%+v", told)
	}
}

func TestTxManyLoseNoUpdate(t *testing.T) {
	store, other := open(t), open(t)
	table, increment := counting(t, store)
	const tasks, rounds = 100, 2
	var group sync.WaitGroup
	for task := 0; task < tasks; task++ {
		group.Add(1)
		go func(store *holdfast.Store) {
			defer group.Done()
			for round := 0; round < rounds; round++ {
				if err := store.Transact(background, holdfast.Labels(label(t, "Count")), increment); err != nil {
					t.Error(err)
				}
			}
		}([]*holdfast.Store{store, other}[task%2])
	}
	group.Wait()
	if n := count(t, store, table); n != tasks*rounds {
		t.Fatal(n)
	}
}

func TestTxExactlyOnceWhileSessionsAreTerminated(t *testing.T) {
	store := open(t)
	if store.IsLocal() {
		return // nobody can end a session of a local store but its process
	}
	table, increment := counting(t, store)
	const tasks, rounds, each = 8, 25, 10
	var committed, doubtful, tried int64
	var group sync.WaitGroup
	for task := 0; task < tasks; task++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; round < rounds; round++ {
				err := store.Transact(background, holdfast.Labels(label(t, "Count")), increment)
				switch {
				case err == nil:
					atomic.AddInt64(&committed, 1)
				case errors.Is(err, holdfast.ErrInDoubt):
					atomic.AddInt64(&doubtful, 1)
				case !errors.Is(err, holdfast.ErrExhausted) && !errors.Is(err, holdfast.ErrUnreachable):
					t.Error(err)
				}
				if atomic.AddInt64(&tried, 1)%each == 0 {
					admin(t, "select pg_terminate_backend(pid) from pg_stat_activity where datname ="+
						" current_database() and usename = 'app' and backend_type = 'client backend'")
				}
			}
		}()
	}
	group.Wait()
	n := int64(count(t, store, table))
	if n < committed || n > committed+doubtful || committed == 0 {
		t.Fatalf("%d are in the table, %d were committed, %d doubtful", n, committed, doubtful)
	}
	t.Logf("%d committed, %d doubtful of %d", committed, doubtful, tasks*rounds)
}

func TestTxApplicationsErrorRollsBack(t *testing.T) {
	store := open(t)
	table, increment := counting(t, store)
	mine := errors.New("not enough")
	err := store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		if err := increment(tx); err != nil {
			return err
		}
		return mine
	})
	if err != mine {
		t.Fatal(err)
	}
	if n := count(t, store, table); n != 0 {
		t.Fatal(n)
	}
}

func TestTxErrorOfAStatement(t *testing.T) {
	store := open(t)
	var failure *holdfast.Error
	err := store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		_, err := tx.Query("select * from nowhere_at_all")
		return fmt.Errorf("my own words: %w", err)
	})
	if !errors.As(err, &failure) || !strings.HasPrefix(err.Error(), "my own words") {
		t.Fatal(err)
	}
	expect(t, err, holdfast.ErrDatabase)
	if !store.IsLocal() && failure.SQLState != "42P01" {
		t.Fatalf("%+v", failure)
	}
	err = store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		_, err := tx.Exec("commit")
		return err
	})
	expect(t, err, holdfast.ErrInvalid)
	err = store.Transact(within(t), nil, func(tx *holdfast.Tx) error { return tx.Queue("select 1/'x'::int, *") })
	expect(t, err, holdfast.ErrDatabase)
}

func TestTxAgainstAFailureThatPasses(t *testing.T) {
	store := open(t)
	if store.IsLocal() {
		return // has no statement that fails so
	}
	table, increment := counting(t, store)
	raise := "do $$ begin raise sqlstate '40001'; end $$"
	attempts := []int{}
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		attempts = append(attempts, tx.Attempt())
		if err := increment(tx); err != nil {
			return err
		}
		if tx.Attempt() < 3 {
			_, err := tx.Exec(raise)
			return fmt.Errorf("in other words: %v", err) // what failed decides, not what is said of it
		}
		return nil
	}, holdfast.Backoff(time.Millisecond, time.Millisecond)))
	if len(attempts) != 3 || count(t, store, table) != 1 {
		t.Fatal(attempts)
	}
	err := store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		_, err := tx.Exec(raise)
		return err
	}, holdfast.Attempts(2), holdfast.Backoff(time.Millisecond, time.Millisecond))
	expect(t, err, holdfast.ErrExhausted)
	var failure *holdfast.Error
	if !errors.As(err, &failure) || failure.SQLState != "40001" {
		t.Fatalf("%#v", err)
	}
}

func TestTxPanicRollsBackAndGoesOn(t *testing.T) {
	store, other := open(t), open(t)
	table, increment := counting(t, store)
	panicked := func() (reason any) {
		defer func() { reason = recover() }()
		_ = store.Transact(background, holdfast.Labels(label(t, "Count")), func(tx *holdfast.Tx) error {
			must(t, increment(tx))
			panic("boom")
		})
		return nil
	}
	if reason := panicked(); reason != "boom" {
		t.Fatal(reason)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = store.Transact(background, holdfast.Labels(label(t, "Count")), func(tx *holdfast.Tx) error {
			runtime.Goexit()
			return nil
		})
	}()
	await(t, ended, "the goroutine ends")
	must(t, other.Transact(within(t), holdfast.Labels(label(t, "Count")), increment))
	if n := count(t, store, table); n != 1 {
		t.Fatal(n)
	}
}

func TestTxIsForItsFunctionAlone(t *testing.T) {
	store := open(t)
	var kept *holdfast.Tx
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		kept = tx
		return nil
	}))
	_, err := kept.Query("select 1")
	expect(t, err, holdfast.ErrInvalid)
	expect(t, kept.Queue("select 1"), holdfast.ErrInvalid)
	expect(t, kept.Serialize(holdfast.Label("x")), holdfast.ErrInvalid)
	expect(t, store.Transact(background, nil, nil), holdfast.ErrInvalid)
}

func TestTxContextEndsIt(t *testing.T) {
	store, other := open(t), open(t)
	table, increment := counting(t, store)
	endless := "select pg_sleep(600)"
	if store.IsLocal() {
		endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
	}
	ctx, cancel := context.WithCancel(background)
	err := store.Transact(ctx, holdfast.Labels(label(t, "Count")), func(tx *holdfast.Tx) error {
		if _, err := tx.Exec("update " + table + " set n = 7"); err != nil {
			return err
		}
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := tx.Exec(endless)
		expect(t, err, holdfast.ErrInterrupted, context.Canceled)
		return err
	})
	expect(t, err, holdfast.ErrInterrupted, context.Canceled)

	// A wait for the label ends, too; and so does what was cancelled before COMMIT.
	must(t, other.Transact(within(t), holdfast.Labels(label(t, "Count")), func(tx *holdfast.Tx) error {
		ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
		defer cancel()
		if _, err := tx.Query("select 1"); err != nil {
			return err
		}
		expect(t, store.Transact(ctx, holdfast.Labels(label(t, "Count")), increment),
			holdfast.ErrInterrupted, context.DeadlineExceeded)
		return nil
	}))
	ctx, cancel = context.WithCancel(background)
	expect(t, store.Transact(ctx, nil, func(tx *holdfast.Tx) error {
		_, err := tx.Exec("update " + table + " set n = 8")
		cancel()
		return err
	}), holdfast.ErrInterrupted, context.Canceled)
	if n := count(t, store, table); n != 0 {
		t.Fatal(n)
	}
}

func TestTxCloseInIt(t *testing.T) {
	store := open(t)
	err := store.Transact(within(t), holdfast.Labels(label(t, "Count")), func(tx *holdfast.Tx) error {
		must(t, store.Close())
		_, err := tx.Exec("select 1")
		return err
	})
	if err != nil { // either it had begun, or it was interrupted: but it must not hang or crash
		expect(t, err, holdfast.ErrInterrupted)
	}
	expect(t, store.Transact(within(t), nil, func(*holdfast.Tx) error { return nil }), holdfast.ErrInvalid)
}

func TestTxValues(t *testing.T) {
	store := open(t)
	seven := 7
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		rows, err := tx.Query("select $1 as text, cast($2 as bigint) as number, $3 as absent,"+
			" cast($4 as real) as real, cast($5 as bigint) as pointed union all select 'b', 2, 'x', 0, 0 order by 2",
			"höld\nfast", int64(-1)<<40, nil, 1.5, &seven)
		if err != nil {
			return err
		}
		var text string
		var number int64
		var nothing *string
		var real float64
		var pointed uint8
		if !rows.Next() || rows.Len() != 2 || strings.Join(rows.Columns(), " ") != "text number absent real pointed" {
			t.Fatal(rows.Columns(), rows.Len())
		}
		must(t, rows.Scan(&text, &number, &nothing, &real, &pointed))
		if text != "höld\nfast" || number != int64(-1)<<40 || nothing != nil || real != 1.5 || pointed != 7 {
			t.Fatal(text, number, nothing, real, pointed)
		}
		expect(t, rows.Scan(&text), holdfast.ErrInvalid)
		expect(t, rows.Scan(&number, &number, &text, &real, &pointed), holdfast.ErrBadData)
		if !rows.Next() || rows.Scan(&text, &number, &nothing, &real, &pointed) != nil || nothing == nil || rows.Next() {
			t.Fatal("the second row")
		}
		var nobody *sql.NullString // its Value would panic
		if err := tx.QueryRow("select count(cast($1 as text))", nobody).Scan(&number); err != nil || number != 0 {
			t.Fatal(number, err)
		}
		_, err = tx.Query("select $1", struct{}{})
		expect(t, err, holdfast.ErrInvalid)
		_, err = tx.Query("select $1", "a\x00b")
		expect(t, err, holdfast.ErrInvalid)
		if err := tx.QueryRow("select 1 where 1 = 0").Scan(&number); err != sql.ErrNoRows {
			t.Fatal(err)
		}
		return nil
	}))
}

func TestTxSerializeAddsALabel(t *testing.T) {
	store := open(t)
	_, increment := counting(t, store)
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		if err := tx.Serialize(holdfast.LabelAs(label(t, "Count"), holdfast.Hashtext)); err != nil {
			return err
		}
		return increment(tx)
	}))
	expect(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		if err := increment(tx); err != nil {
			return err
		}
		return tx.Serialize(holdfast.Label(label(t, "Count")))
	}), holdfast.ErrOrder)
}

func TestTxLeaksNothing(t *testing.T) {
	leaksNothing(t, 2000, func(store *holdfast.Store, ctx context.Context) {
		must(t, store.Transact(ctx, holdfast.Labels(label(t, "Count")), func(tx *holdfast.Tx) error {
			rows, err := tx.Query("select 1, $1", "x")
			if err == nil && rows.Len() != 1 {
				t.Error(rows.Len())
			}
			return err
		}, holdfast.ReadOnly(), holdfast.OnStats(func(holdfast.TxStats) {})))
	})
}
