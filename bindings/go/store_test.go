package holdfast_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast"
	"holdfast/internal/heap"
)

func TestStoreRefusesBadInput(t *testing.T) {
	ctx := within(t)
	for _, url := range []string{"local:", "nonsense", "postgresql://nobody@127.0.0.1:1/none", "a\x00b"} {
		if store, err := holdfast.Open(ctx, url, holdfast.WithConnectTimeout(time.Second)); err == nil {
			t.Fatalf("%q was opened: %s", url, store.Name())
		} else if failure := new(holdfast.Error); !errors.As(err, &failure) {
			t.Fatalf("%T", err)
		}
	}
	store := open(t)
	long := strings.Repeat("x", 100_000)
	expect(t, lockRefused(t, store, long), holdfast.ErrInvalid)
	expect(t, lockRefused(t, store, "job", holdfast.Slots(-1)), holdfast.ErrInvalid)
	expect(t, lockRefused(t, store, "job", holdfast.Slots(1<<20)), holdfast.ErrInvalid)
	expect(t, lockRefused(t, store, "12", holdfast.As(holdfast.Fixed)), holdfast.ErrInvalid)
	expect(t, lockRefused(t, store, "job", holdfast.As(holdfast.Derivation(99))), holdfast.ErrInvalid)
	_, err := store.LockAll(ctx, nil)
	expect(t, err, holdfast.ErrInvalid)
	_, err = holdfast.DeriveKey(holdfast.Minted, "x")
	expect(t, err, holdfast.ErrInvalid)
	_, err = holdfast.ParseDerivation("md4")
	expect(t, err, holdfast.ErrInvalid)
	_, err = holdfast.ReadRegistry("/nowhere/locks.yaml")
	if failure := new(holdfast.Error); !errors.As(err, &failure) {
		t.Fatal(err)
	}
}

func TestStoreAfterItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := holdfast.Open(ctx, testURL(t))
	expect(t, err, holdfast.ErrInterrupted, context.Canceled)
	store := open(t)
	_, err = store.Locks(ctx)
	expect(t, err, holdfast.ErrInterrupted, context.Canceled)
	expect(t, store.Transact(ctx, nil, nil), holdfast.ErrInvalid)
	expect(t, store.Transact(ctx, nil, func(*holdfast.Tx) error { return nil }), holdfast.ErrInterrupted, context.Canceled)
}

func TestStoreAfterClose(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "job")
	lock := acquire(t, store, name)
	must(t, store.Close())
	must(t, acquire(t, other, name, holdfast.NoWait()).Release())

	expect(t, lock.Release(), holdfast.ErrInvalid)
	if lock.Held() {
		t.Fatal("it is still held")
	}
	lock.Note("after", "close")
	expect(t, lock.Transact(background, func(*holdfast.Tx) error { return nil }), holdfast.ErrInvalid)
	expect(t, store.Close(), holdfast.ErrInvalid)
	expect(t, lockRefused(t, store, name), holdfast.ErrInvalid)
	expect(t, store.Transact(background, nil, func(*holdfast.Tx) error { return nil }), holdfast.ErrInvalid)
	_, err := store.Locks(background)
	expect(t, err, holdfast.ErrInvalid)
	_, err = store.Network("testnet")
	expect(t, err, holdfast.ErrInvalid)
	if store.HasRecords() {
		t.Fatal("a closed store has records")
	}
}

func TestStoreCloseEndsWaits(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "job")
	held := acquire(t, other, name)
	told, begun := waits()
	done := make(chan error, 1)
	go func() {
		_, err := store.Lock(background, name, told)
		done <- err
	}()
	await(t, begun, "the wait begins")
	must(t, store.Close())
	expect(t, <-done, holdfast.ErrInterrupted)
	must(t, held.Release())
}

func TestStoreTellsItsMessages(t *testing.T) {
	messages := make(chan string, 100)
	store := open(t, holdfast.WithLog(func(_ holdfast.LogLevel, message string) { messages <- message }))
	must(t, store.Transact(within(t), holdfast.Labels("lock"), func(*holdfast.Tx) error { return nil }))
	select {
	case message := <-messages:
		if !strings.Contains(message, "lock") {
			t.Fatal(message)
		}
	case <-time.After(patience):
		t.Fatal("nobody was warned about the label")
	}
}

func TestStoreListsLocks(t *testing.T) {
	store, name := open(t), label(t, "job")
	lock := acquire(t, store, name)
	defer lock.Release()
	views, err := store.Locks(within(t))
	must(t, err)
	for _, view := range views {
		if view.Key == lock.Key() && !view.Waiting && !view.IsPair {
			if store.HasRecords() && (view.Label != name || view.PID != os.Getpid() || !view.Ours) {
				t.Fatalf("%+v", view)
			}
			return
		}
	}
	t.Fatalf("%d is not among %+v", lock.Key(), views)
}

func TestStoreIsExamined(t *testing.T) {
	findings, err := open(t).Examine(within(t))
	must(t, err)
	if len(findings) == 0 || findings[0].Topic == "" || findings[0].Text == "" {
		t.Fatalf("%+v", findings)
	}
}

func TestStoreUsesARegistry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.yaml")
	must(t, os.WriteFile(path, []byte("version: 1\nlocks:\n"+
		"- name: nightly\n  key: { fixed: 4242 }\n  purpose: runs at night\n"+
		"- name: booking\n  key: { pattern: \"Book:{tenant}:{day}\", as: hashtext }\n  purpose: books\n"), 0o600))
	registry, err := holdfast.ReadRegistry(path)
	must(t, err)
	if entries := registry.Entries(); len(entries) != 2 || entries[0].Purpose == "" {
		t.Fatalf("%+v", entries)
	}
	text, err := registry.Fill("booking", map[string]string{"tenant": "7", "day": "monday"})
	must(t, err)
	_, err = registry.Fill("booking", map[string]string{"tenant": "7"})
	expect(t, err, holdfast.ErrInvalid)
	_, err = registry.Fill("none", nil)
	expect(t, err, holdfast.ErrInvalid)

	store := open(t, holdfast.WithRegistry(registry))
	registry = nil
	runtime.GC() // the store keeps it alive
	runtime.GC()
	nightly, booking := acquire(t, store, "nightly"), acquire(t, store, text)
	hashed, err := holdfast.DeriveKey(holdfast.Hashtext, text)
	must(t, err)
	if nightly.Key() != 4242 || booking.Key() != hashed {
		t.Fatal(nightly.Key(), booking.Key(), hashed)
	}
	must(t, booking.Release())
	must(t, nightly.Release())
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// leaksNothing counts what is allocated in C, descriptors, goroutines and values for C: a block of the smallest
// size for each round is more than it lets pass. Without records, as writing them fills caches.
func leaksNothing(t *testing.T, rounds int, round func(*holdfast.Store, context.Context)) {
	store := open(t, holdfast.WithRecords(holdfast.RecordsOff))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for i := 0; i < rounds/5; i++ {
		round(store, ctx)
	}
	held, files, goroutines, kept := heap.InUse(), descriptors(t), runtime.NumGoroutine(), holdfast.Kept()
	for i := 0; i < rounds; i++ {
		round(store, ctx)
	}
	if grown := heap.InUse() - held; grown > int64(20*rounds) {
		t.Errorf("%d bytes more are allocated after %d rounds", grown, rounds)
	}
	if now := descriptors(t); now > files+2 {
		t.Errorf("%d descriptors, %d before", now, files)
	}
	if now := holdfast.Kept(); now != kept {
		t.Errorf("C has the numbers of %d values, %d before", now, kept)
	}
	if now := runtime.NumGoroutine(); now > goroutines+2 {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
}

func TestStoreLeaksNothing(t *testing.T) {
	leaksNothing(t, 5000, func(store *holdfast.Store, ctx context.Context) {
		lock, err := store.Lock(ctx, label(t, "job"), holdfast.NoWait(), holdfast.OnWait(func(error) {}), holdfast.Yielding())
		must(t, err)
		must(t, lock.Release())
		_, err = holdfast.DeriveKey(holdfast.JavaHashCode, "a\xff")
		expect(t, err, holdfast.ErrInvalid)
	})
}

func TestStoreGivesBackWhatItHad(t *testing.T) {
	files := descriptors(t)
	for i := 0; i < 10; i++ {
		store, err := holdfast.Open(within(t), testURL(t), holdfast.WithLog(func(holdfast.LogLevel, string) {}))
		must(t, err)
		acquire(t, store, label(t, "job"))
		must(t, store.Close())
	}
	for deadline := time.Now().Add(patience); descriptors(t) > files+2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors, %d before", descriptors(t), files)
		}
	}
}
