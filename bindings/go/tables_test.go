package holdfast_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"holdfast"
)

func TestTables(t *testing.T) {
	store, other, ctx := open(t), open(t), within(t)
	name, err := holdfast.ParseTableName("shop.events_" + t.Name())
	must(t, err)
	if name.Database != "shop" || name.String() != "shop.events_"+t.Name() {
		t.Fatalf("%+v", name)
	}
	_, err = holdfast.ParseTableName("a.b.c.d")
	expect(t, err, holdfast.ErrInvalid)
	if !store.HasRecords() {
		_, _, err := store.RegisterTable(ctx, name)
		expect(t, err, holdfast.ErrNoSchema)
		return
	}
	if id, err := store.FindTable(ctx, name); err != nil || id != 0 {
		t.Fatal(id, err)
	}
	lock, err := store.LockTable(ctx, name)
	must(t, err)
	_, err = other.LockTable(ctx, name, holdfast.NoWait())
	expect(t, err, holdfast.ErrNotAcquired)
	_, err = other.LockAll(ctx, []holdfast.Target{holdfast.LabelAs(name.String(), holdfast.Minted)}, holdfast.NoWait())
	expect(t, err, holdfast.ErrNotAcquired)
	id, created, err := other.RegisterTable(ctx, name)
	if err != nil || created || id != lock.Key() {
		t.Fatal(id, created, err)
	}
	expect(t, other.DropTable(ctx, name, false, 0), holdfast.ErrNotAcquired)
	must(t, lock.Release())

	again, err := store.ReferTable(ctx, name, "reports")
	if err != nil || again != id {
		t.Fatal(again, err)
	}
	contexts, err := store.TableContexts(ctx, name)
	if err != nil || len(contexts) != 1 || contexts[0] != "reports" {
		t.Fatal(contexts, err)
	}
	expect(t, store.DropTable(ctx, name, false, 0), holdfast.ErrInvalid)
	_, err = store.ReferTable(ctx, name, "a\x00b")
	expect(t, err, holdfast.ErrInvalid)
	retired, err := store.UnreferTable(ctx, name, "reports", time.Second)
	if err != nil || !retired {
		t.Fatal(retired, err)
	}
	views, err := store.Tables(ctx, true)
	must(t, err)
	for _, view := range views {
		if view.ID == id && view.Name == name && !view.Dropped.IsZero() {
			return
		}
	}
	t.Fatalf("%+v", views)
}

func TestCursors(t *testing.T) {
	store, ctx := open(t), within(t)
	network, err := store.Network("gonet")
	must(t, err)
	_, err = store.Network("Not A Name")
	expect(t, err, holdfast.ErrInvalid)
	if _, found, err := network.Cursor(ctx, "position"); err != nil || found {
		t.Fatal(found, err)
	}
	must(t, network.SetCursor(ctx, "position", 10))
	must(t, network.AdvanceCursor(ctx, "position", 11))
	expect(t, network.AdvanceCursor(ctx, "position", 11), holdfast.ErrCursor)
	must(t, network.SwapCursor(ctx, "position", 11, 20))
	expect(t, network.SwapCursor(ctx, "position", 11, 20), holdfast.ErrCursor)
	must(t, network.LowerCursor(ctx, "position", 5))
	if value, found, err := network.Cursor(ctx, "position"); err != nil || !found || value != 5 {
		t.Fatal(value, found, err)
	}
	cursors, err := network.Cursors(ctx)
	if err != nil || len(cursors) != 1 || cursors[0] != (holdfast.Cursor{Name: "position", Value: 5}) {
		t.Fatal(cursors, err)
	}
	if _, err := network.Gaps(ctx, 1, 3); err != nil {
		expect(t, err, holdfast.ErrConfig) // nobody has ingested here yet
	}
}

// TestInDoubt gives up a call that changes something and that the library cannot end.
func TestInDoubt(t *testing.T) {
	store := open(t)
	if store.IsLocal() {
		return // only on a server can a stranger lock the table
	}
	network, err := store.Network("doubtnet")
	must(t, err)
	must(t, network.SetCursor(within(t), "position", 1))
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		if _, err := tx.Exec("lock table ingest_doubtnet.ingest_store"); err != nil {
			return err
		}
		for _, call := range []struct {
			of     func(context.Context) error
			wanted error
		}{
			{func(ctx context.Context) error { return network.SetCursor(ctx, "position", 2) }, holdfast.ErrInDoubt},
			{func(ctx context.Context) error { _, _, err := network.Cursor(ctx, "position"); return err },
				holdfast.ErrInterrupted},
		} {
			ctx, cancel := context.WithCancel(background)
			done := make(chan error, 1)
			before := waiters(t, tx)
			go func() { done <- call.of(ctx) }()
			for waiters(t, tx) == before {
				runtime.Gosched()
			}
			cancel()
			expect(t, <-done, call.wanted, context.Canceled)
		}
		return nil
	}, holdfast.WithIsolation(holdfast.ReadCommitted)))
}

// waiters counts those who wait for a table of the database.
func waiters(t *testing.T, tx *holdfast.Tx) (n int) {
	t.Helper()
	must(t, tx.QueryRow("select count(*) from pg_locks where not granted and locktype = 'relation' and database ="+
		" (select oid from pg_database where datname = current_database())").Scan(&n))
	return n
}

func TestSchedule(t *testing.T) {
	store, ctx := open(t), within(t)
	due, _, err := store.ClaimSchedule(ctx, label(t, "job"), time.Hour)
	if !store.HasRecords() {
		expect(t, err, holdfast.ErrNoSchema)
		return
	}
	if err != nil || !due {
		t.Fatal(due, err)
	}
	due, wait, err := store.ClaimSchedule(ctx, label(t, "job"), time.Hour)
	if err != nil || due || wait <= 0 || wait > time.Hour {
		t.Fatal(due, wait, err)
	}
	past, err := store.PastLocks(ctx, -1)
	if err != nil {
		t.Fatal(past, err)
	}
}

func TestPrivateLockTransacts(t *testing.T) {
	store, ctx := open(t), within(t)
	table, increment := counting(t, store)
	lock := acquire(t, store, label(t, "Ingest"), holdfast.Private())
	must(t, lock.Transact(ctx, func(tx *holdfast.Tx) error {
		expect(t, lock.Release(), holdfast.ErrOrder)
		expect(t, lock.Transact(ctx, increment), holdfast.ErrOrder)
		return increment(tx)
	}))
	if n := count(t, store, table); n != 1 {
		t.Fatal(n)
	}
	lose(t, lock)
	await(t, lock.Lost(), "the loss is told")
	expect(t, lock.Transact(ctx, increment), holdfast.ErrLost)
	expect(t, lock.Release(), holdfast.ErrLost)
	expect(t, lock.Transact(ctx, increment), holdfast.ErrInvalid)
	if n := count(t, store, table); n != 1 {
		t.Fatal(n)
	}

	shared := acquire(t, store, label(t, "Other"))
	expect(t, shared.Transact(ctx, increment), holdfast.ErrInvalid)
	must(t, shared.Release())
}

func TestCloseInATransactionOfALock(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "Ingest")
	lock := acquire(t, store, name, holdfast.Private())
	_ = lock.Transact(within(t), func(tx *holdfast.Tx) error {
		must(t, store.Close())
		_, err := tx.Exec("select 1")
		return err
	})
	if lock.Held() {
		t.Fatal("it is still held")
	}
	must(t, acquire(t, other, name).Release())
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HOLDFAST_URL", testURL(t))
	store, err := holdfast.Open(within(t), "", holdfast.FromEnvironment())
	must(t, err)
	defer store.Close()
	if store.Registry() != nil {
		t.Fatal(store.Registry().Path)
	}
	must(t, acquire(t, store, label(t, "job")).Release())
	_, err = holdfast.Open(within(t), "")
	expect(t, err, holdfast.ErrInvalid)
}
