package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast"
)

// acquiring is a lock that is waited for.
type acquiring struct {
	lock chan *holdfast.Lock
	err  chan error
}

type lockCall func(context.Context, ...holdfast.LockOption) (*holdfast.Lock, error)

func byLabel(store *holdfast.Store, label string) lockCall {
	return func(ctx context.Context, options ...holdfast.LockOption) (*holdfast.Lock, error) {
		return store.Lock(ctx, label, options...)
	}
}

// start returns when the call waits.
func start(ctx context.Context, t *testing.T, call lockCall, options ...holdfast.LockOption) acquiring {
	t.Helper()
	told, begun := waits()
	wait := acquiring{make(chan *holdfast.Lock, 1), make(chan error, 1)}
	go func() {
		lock, err := call(ctx, append(options, told)...)
		if err != nil {
			wait.err <- err
		} else {
			wait.lock <- lock
		}
	}()
	await(t, begun, "the wait begins")
	return wait
}

func (wait acquiring) result(t *testing.T) *holdfast.Lock {
	t.Helper()
	select {
	case lock := <-wait.lock:
		return lock
	case err := <-wait.err:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("it was not acquired")
	}
	return nil
}

func (wait acquiring) goesOn(t *testing.T) {
	t.Helper()
	if len(wait.lock)+len(wait.err) > 0 {
		t.Fatal("it waits no more")
	}
}

func hear(t *testing.T, lock *holdfast.Lock) string {
	t.Helper()
	select {
	case who := <-lock.Asked():
		return who
	case <-time.After(patience):
		t.Fatal("nobody asked")
	}
	return ""
}

func TestYieldGoesToTheOneThatAsked(t *testing.T) {
	for how, way := range map[string][]holdfast.LockOption{
		"session": nil, "private": {holdfast.Private()}, "lease": {holdfast.Lease(5 * time.Second)},
	} {
		t.Run(how, func(t *testing.T) {
			store, other, successor := open(t), open(t), open(t, holdfast.WithApplication("successor"))
			name, kept := label(t, "job"), holdfast.Kept()
			lock, err := store.Lock(within(t), name, append(way, holdfast.Yielding())...)
			if errors.Is(err, holdfast.ErrNoSchema) {
				t.Skip("leases need the schema")
			}
			must(t, err)
			before := start(background, t, byLabel(other, name), way...)
			asks := start(background, t, byLabel(successor, name), append(way, holdfast.Ask())...)
			who := hear(t, lock)
			if !strings.Contains(who, name) || store.HasRecords() && !strings.Contains(who, "successor") {
				t.Fatal(who)
			}
			asks.goesOn(t)
			if !lock.Held() {
				t.Fatal("it is not held")
			}
			must(t, lock.Release())
			second := asks.result(t)
			time.Sleep(500 * time.Millisecond)
			before.goesOn(t)
			if len(lock.Asked()) > 0 || second.Asked() != nil {
				t.Fatal("told twice, or unasked")
			}
			must(t, second.Release())
			must(t, before.result(t).Release())
			if now := holdfast.Kept(); now != kept {
				t.Fatalf("%d values are kept, before %d", now, kept)
			}
		})
	}
}

func TestYieldOfTables(t *testing.T) {
	store, other := open(t), open(t)
	if !store.HasRecords() {
		return
	}
	name, err := holdfast.ParseTableName("shop.asked_" + t.Name())
	must(t, err)
	lock, err := store.LockTable(within(t), name, holdfast.Yielding())
	must(t, err)
	asks := start(background, t, func(ctx context.Context, options ...holdfast.LockOption) (*holdfast.Lock, error) {
		return other.LockTable(ctx, name, options...)
	}, holdfast.Ask())
	hear(t, lock)
	must(t, lock.Release())
	must(t, asks.result(t).Release())
}

// Whoever does not receive goes on, and is told of a loss all the same.
func TestYieldMayBeRefused(t *testing.T) {
	store, other, name := open(t, holdfast.WithPing(50*time.Millisecond, 10*time.Second)), open(t), label(t, "job")
	lock := acquire(t, store, name, holdfast.Yielding())
	ctx, cancel := context.WithCancel(background)
	asks := start(ctx, t, byLabel(other, name), holdfast.Ask())
	for end := time.Now().Add(patience); len(lock.Asked()) == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	asks.goesOn(t)
	cancel()
	expect(t, <-asks.err, holdfast.ErrInterrupted, context.Canceled)
	if len(lock.Asked()) != 1 || !lock.Held() {
		t.Fatal("nobody asked, or the lock is gone")
	}
	lose(t, lock)
	await(t, lock.Lost(), "the loss is told")
	expect(t, lock.Release(), holdfast.ErrLost)
	must(t, acquire(t, other, name).Release())
}

func TestYieldMisuse(t *testing.T) {
	store, name := open(t), label(t, "job")
	expect(t, lockRefused(t, store, name, holdfast.Ask(), holdfast.NoWait()), holdfast.ErrInvalid)
	set := []holdfast.Target{holdfast.Label(name), holdfast.Key(4712)}
	kept := holdfast.Kept()
	for _, how := range []holdfast.LockOption{holdfast.Ask(), holdfast.Yielding()} {
		expect(t, lockRefused(t, store, name, how, holdfast.Slots(2)), holdfast.ErrInvalid)
		_, err := store.LockAll(within(t), set, how)
		expect(t, err, holdfast.ErrInvalid)
	}
	if now := holdfast.Kept(); now != kept {
		t.Fatalf("%d values are kept, before %d", now, kept)
	}
}
