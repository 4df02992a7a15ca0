package holdfast_test

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast"
)

func TestLockIsExclusive(t *testing.T) {
	store, other := open(t), open(t)
	lock := acquire(t, store, label(t, "job"), holdfast.NoWait())
	if !lock.Held() {
		t.Fatal("it is not held")
	}
	err := lockRefused(t, other, label(t, "job"), holdfast.NoWait())
	expect(t, err, holdfast.ErrNotAcquired)
	expect(t, lockRefused(t, store, label(t, "job"), holdfast.WaitFor(time.Millisecond)), holdfast.ErrNotAcquired)
	must(t, lock.Release())
	must(t, acquire(t, other, label(t, "job"), holdfast.NoWait()).Release())
}

func TestLockErrorTellsAll(t *testing.T) {
	store := open(t)
	defer acquire(t, store, label(t, "job")).Release()
	var failure *holdfast.Error
	err := lockRefused(t, store, label(t, "job"), holdfast.NoWait())
	if !errors.As(err, &failure) || failure.Status != holdfast.ErrNotAcquired || failure.Message == "" {
		t.Fatalf("%#v", err)
	}
	if failure.Status.Name() != "HF_NOT_ACQUIRED" || !strings.Contains(err.Error(), failure.Message) {
		t.Fatal(err)
	}
	if errors.Is(err, holdfast.ErrLost) || errors.Is(err, context.Canceled) {
		t.Fatal("it is something else, too")
	}
}

func TestLockAgainstTheCommand(t *testing.T) {
	store, name := open(t), label(t, "job")
	held := holdElsewhere(t, name)
	expect(t, lockRefused(t, store, name, holdfast.NoWait()), holdfast.ErrNotAcquired)
	told, begun := waits()
	acquired := make(chan *holdfast.Lock, 1)
	go func() {
		lock, err := store.Lock(background, name, told)
		if err != nil {
			t.Error(err)
		}
		acquired <- lock
	}()
	await(t, begun, "the wait begins")
	must(t, held.release())
	lock := <-acquired
	var exit *exec.ExitError
	if err := command(t, "run", "--unregistered", "-n", name, "--", "true").Run(); !errors.As(err, &exit) || exit.ExitCode() != 75 {
		t.Fatalf("the command was not refused: %v", err)
	}
	must(t, lock.Release())
	must(t, command(t, "run", "--unregistered", "-n", name, "--", "true").Run())
}

func TestLockModes(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "job")
	first, second := acquire(t, store, name, holdfast.Shared()), acquire(t, other, name, holdfast.Shared())
	expect(t, lockRefused(t, other, name, holdfast.NoWait()), holdfast.ErrNotAcquired)
	must(t, first.Release())
	must(t, second.Release())

	private := acquire(t, store, name, holdfast.Private())
	must(t, private.Release())

	one, two := acquire(t, store, name, holdfast.Slots(2)), acquire(t, other, name, holdfast.Slots(2))
	if one.Slot()+two.Slot() != 3 {
		t.Fatal(one.Slot(), two.Slot())
	}
	expect(t, lockRefused(t, store, name, holdfast.Slots(2), holdfast.NoWait()), holdfast.ErrNotAcquired)
	must(t, one.Release())
	must(t, two.Release())
}

func TestLeaseExcludesAsALockDoes(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "lease")
	expect(t, lockRefused(t, store, name, holdfast.Lease(time.Millisecond)), holdfast.ErrInvalid)
	lease, err := store.Lock(within(t), name, holdfast.Lease(5*time.Second))
	if errors.Is(err, holdfast.ErrNoSchema) {
		t.Skip("leases need the schema")
	}
	must(t, err)
	expect(t, lockRefused(t, other, name, holdfast.Lease(5*time.Second), holdfast.NoWait()), holdfast.ErrNotAcquired)
	must(t, lease.Release())
	must(t, acquire(t, other, name, holdfast.Lease(5*time.Second), holdfast.NoWait()).Release())
}

func TestLockSetIsAllOrNone(t *testing.T) {
	store, other := open(t), open(t)
	targets := []holdfast.Target{holdfast.Label(label(t, "a")), holdfast.Key(4711), holdfast.Label(label(t, "b"))}
	held := acquire(t, other, label(t, "b"))
	_, err := store.LockAll(within(t), targets, holdfast.NoWait())
	expect(t, err, holdfast.ErrNotAcquired)
	must(t, acquire(t, other, label(t, "a"), holdfast.NoWait()).Release())
	must(t, held.Release())
	set, err := store.LockAll(within(t), targets)
	must(t, err)
	_, err = other.LockAll(within(t), []holdfast.Target{holdfast.Key(4711)}, holdfast.NoWait())
	expect(t, err, holdfast.ErrNotAcquired)
	must(t, set.Release())

	pair, err := store.LockAll(within(t), []holdfast.Target{holdfast.Pair(1, -2)}, holdfast.NoWait())
	must(t, err)
	_, err = other.LockAll(within(t), []holdfast.Target{holdfast.Pair(1, -2)}, holdfast.NoWait())
	expect(t, err, holdfast.ErrNotAcquired)
	must(t, pair.Release())
}

func TestLockDerivation(t *testing.T) {
	store, name := open(t), label(t, "job")
	lock := acquire(t, store, name, holdfast.As(holdfast.Hashtext))
	key, err := holdfast.DeriveKey(holdfast.Hashtext, name)
	must(t, err)
	if lock.Key() != key {
		t.Fatal(lock.Key(), key)
	}
	must(t, acquire(t, store, name, holdfast.NoWait()).Release())
	must(t, lock.Release())
}

func TestLockOwners(t *testing.T) {
	store, name := open(t), label(t, "job")
	mine := holdfast.WithOwner(holdfast.NewOwner())
	lock := acquire(t, store, name, mine)
	again := acquire(t, store, name, mine, holdfast.Reentrant(), holdfast.NoWait())
	expect(t, lockRefused(t, store, name, holdfast.Reentrant(), holdfast.NoWait()), holdfast.ErrNotAcquired)
	must(t, again.Release())

	// The order rule is among the calls of one owner.
	smaller := holdfast.Key(lock.Key() - 1)
	_, err := store.LockAll(within(t), []holdfast.Target{smaller}, mine)
	expect(t, err, holdfast.ErrOrder)
	free, err := store.LockAll(within(t), []holdfast.Target{smaller})
	must(t, err)
	must(t, free.Release())
	must(t, lock.Release())
}

func TestLockTokensGrow(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "job")
	if !store.HasRecords() {
		lock := acquire(t, store, name)
		_, err := lock.Token()
		expect(t, err, holdfast.ErrNoSchema)
		must(t, lock.Release())
		expect(t, lockRefused(t, store, name, holdfast.NeedToken()), holdfast.ErrNoSchema)
		return
	}
	last := int64(0)
	for i := 0; i < 20; i++ {
		lock := acquire(t, []*holdfast.Store{store, other}[i%2], name, holdfast.NeedToken())
		token, err := lock.Token()
		must(t, err)
		if token <= last {
			t.Fatalf("%d after %d", token, last)
		}
		last = token
		lock.Note("step", "one")
		must(t, lock.Release())
	}
}

func TestLockLossIsTold(t *testing.T) {
	store, name := open(t, holdfast.WithPing(50*time.Millisecond, 10*time.Second)), label(t, "job")
	lock := acquire(t, store, name)
	select {
	case <-lock.Lost():
		t.Fatal("told before it was lost")
	default:
	}
	must(t, lock.Err())
	lose(t, lock)
	await(t, lock.Lost(), "the loss is told")
	expect(t, lock.Err(), holdfast.ErrLost)
	if lock.Held() {
		t.Fatal("it is still held")
	}
	expect(t, lock.Release(), holdfast.ErrLost)
	expect(t, lock.Release(), holdfast.ErrInvalid)
	must(t, acquire(t, store, name).Release())
}

func TestLockOnOtherSessionsIsNotLost(t *testing.T) {
	store := open(t, holdfast.WithPing(50*time.Millisecond, 10*time.Second))
	if store.IsLocal() {
		return // a local store has no sessions to lose one by one
	}
	private, lock := acquire(t, store, label(t, "private"), holdfast.Private()), acquire(t, store, label(t, "job"))
	lose(t, lock)
	await(t, lock.Lost(), "the loss is told")
	must(t, private.Release())
}

func TestLockWaitIsCancelled(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "job")
	held := acquire(t, other, name)
	for _, how := range []holdfast.LockOption{holdfast.WaitFor(-1), holdfast.Private(), holdfast.Shared()} {
		ctx, cancel := context.WithCancel(background)
		told := holdfast.OnWait(func(why error) {
			if !errors.Is(why, holdfast.ErrNotAcquired) {
				t.Error(why)
			}
			cancel()
		})
		_, err := store.Lock(ctx, name, how, told)
		expect(t, err, holdfast.ErrInterrupted, context.Canceled)
	}
	ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
	defer cancel()
	_, err := store.Lock(ctx, name)
	expect(t, err, holdfast.ErrInterrupted, context.DeadlineExceeded)
	_, err = store.Lock(ctx, name)
	expect(t, err, holdfast.ErrInterrupted, context.DeadlineExceeded)
	must(t, held.Release())
	// What the server grants to a wait that was given up is given back when its answer comes.
	must(t, acquire(t, other, name).Release())
}

func TestLockNothingIsHeldAfterManyCancelledWaits(t *testing.T) {
	store, name := open(t), label(t, "job")
	held := holdElsewhere(t, name)
	const tasks, rounds = 50, 20
	var group sync.WaitGroup
	for task := 0; task < tasks; task++ {
		group.Add(1)
		go func(task int) {
			defer group.Done()
			for round := 0; round < rounds; round++ {
				ctx, cancel := context.WithTimeout(background, time.Duration((task+round)%25)*time.Millisecond)
				lock, err := store.Lock(ctx, name)
				cancel()
				if err == nil {
					t.Error("acquired what another process holds")
					_ = lock.Release()
				} else if !errors.Is(err, holdfast.ErrInterrupted) {
					t.Error(err)
				}
			}
		}(task)
	}
	group.Wait()
	must(t, held.release())
	must(t, command(t, "run", "--unregistered", "-w", "20s", name, "--", "true").Run())
}

func TestLockIsHeldOrNotWhenItComesWithTheCancel(t *testing.T) {
	store, other, name := open(t), open(t), label(t, "job")
	for round := 0; round < 40; round++ {
		held := acquire(t, other, name)
		ctx, cancel := context.WithCancel(background)
		told, begun := waits()
		done := make(chan error, 1)
		go func() {
			lock, err := store.Lock(ctx, name, told)
			if err == nil {
				err = lock.Release()
			}
			done <- err
		}()
		await(t, begun, "the wait begins")
		go cancel()
		must(t, held.Release())
		if err := <-done; err != nil {
			expect(t, err, holdfast.ErrInterrupted)
		}
	}
	must(t, acquire(t, other, name).Release())
}

func TestLockManyTasks(t *testing.T) {
	store, name := open(t), label(t, "job")
	const tasks, rounds = 100, 3
	inside, total := 0, 0
	var group sync.WaitGroup
	for task := 0; task < tasks; task++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; round < rounds; round++ {
				err := store.WithLock(background, name, func(*holdfast.Lock) error {
					inside++
					if inside != 1 {
						t.Error("two are inside")
					}
					inside--
					total++
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	if total != tasks*rounds {
		t.Fatal(total)
	}
}

func TestLockIsReleasedByAPanic(t *testing.T) {
	store, name := open(t), label(t, "job")
	panicked := func() (reason any) {
		defer func() { reason = recover() }()
		_ = store.WithLock(background, name, func(*holdfast.Lock) error { panic("boom") })
		return nil
	}
	if reason := panicked(); reason != "boom" {
		t.Fatal(reason)
	}
	must(t, acquire(t, store, name, holdfast.NoWait()).Release())
}

func TestLockPanicOfOnWaitGoesOnAfterC(t *testing.T) {
	store, name := open(t), label(t, "job")
	held := acquire(t, store, name)
	panicked := func() (reason any) {
		defer func() { reason = recover() }()
		_, _ = store.Lock(background, name, holdfast.WaitFor(50*time.Millisecond),
			holdfast.OnWait(func(error) { panic("boom") }))
		return nil
	}
	if reason := panicked(); reason != "boom" {
		t.Fatal(reason)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = store.Lock(background, name, holdfast.WaitFor(50*time.Millisecond),
			holdfast.OnWait(func(error) { runtime.Goexit() }))
		t.Error("it came back")
	}()
	await(t, ended, "the goroutine ends")
	must(t, held.Release())
	must(t, acquire(t, store, name, holdfast.NoWait()).Release())
}
