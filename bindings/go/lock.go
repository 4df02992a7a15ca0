package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"sync"
	"time"
)

type lockConfig struct {
	as     Derivation
	shared bool
	wait   time.Duration
	flags  C.uint
	slots  int
	lease  time.Duration
	onWait func(why error)
	yields bool
	owner  Owner

	traceParent string
}

// LockOption is an option of Lock, LockAll and LockTable.
type LockOption interface{ setLock(*lockConfig) }

type lockOption func(*lockConfig)

func (o lockOption) setLock(c *lockConfig) { o(c) }

func withFlag(flag C.uint) LockOption {
	return lockOption(func(c *lockConfig) { c.flags |= flag })
}

// NoWait fails with ErrNotAcquired at once when the lock is not free.
func NoWait() LockOption { return WaitFor(0) }

// WaitFor bounds the wait; a negative one is for ever, as is the default.
func WaitFor(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.wait = d })
}

// Shared is for those who may hold the lock together.
func Shared() LockOption { return lockOption(func(c *lockConfig) { c.shared = true }) }

// Slots lets up to n hold the lock. All must use the same n: ErrSlots.
func Slots(n int) LockOption { return lockOption(func(c *lockConfig) { c.slots = n }) }

// Lease takes no lock of a session but a lease of that time, renewed until it is released. It goes
// through any pooler; the library refuses what is below a second or above a day.
func Lease(d time.Duration) LockOption { return lockOption(func(c *lockConfig) { c.lease = d }) }

// As gives the label of Lock another derivation, as LabelAs does.
func As(how Derivation) LockOption { return lockOption(func(c *lockConfig) { c.as = how }) }

// Private puts the lock on a session of its own, so it is not lost with others; Transact needs it.
func Private() LockOption { return withFlag(C.HF_PRIVATE) }

// Reentrant lets an owner who holds the lock have it again; see WithOwner.
func Reentrant() LockOption { return withFlag(C.HF_REENTRANT) }

// AnyOrder allows an owner to wait for a smaller key while holding a greater one; a deadlock is
// found, and ends with ErrDeadlock.
func AnyOrder() LockOption { return withFlag(C.HF_ANY_ORDER) }

// NeedToken fails with ErrNoSchema rather than hold without a fencing token.
func NeedToken() LockOption { return withFlag(C.HF_NEED_TOKEN) }

// Ask goes before all who wait, and asks the holder to yield; see Yielding. It needs a wait and one
// label, without slots.
func Ask() LockOption { return withFlag(C.HF_ASK) }

// Yielding hears of those who ask for the lock; see Asked. The store is looked at once a second while
// the lock is held. It goes with one label, without slots.
func Yielding() LockOption { return lockOption(func(c *lockConfig) { c.yields = true }) }

// OnWait is called at most once, before the call waits; why names the holder.
func OnWait(fn func(why error)) LockOption {
	return lockOption(func(c *lockConfig) { c.onWait = fn })
}

// OwnerOption is an option of locks and of transactions.
type OwnerOption struct{ owner Owner }

func (o OwnerOption) setLock(c *lockConfig) { c.owner = o.owner }
func (o OwnerOption) setTx(c *txConfig)     { c.owner = o.owner }

// WithOwner makes the call one of a task's: the order rule and Reentrant hold among its calls.
func WithOwner(owner Owner) OwnerOption { return OwnerOption{owner} }

// Lock is a lock that was acquired. It is held until Release, until it is lost, or until its store
// is closed. All goroutines may use it.
type Lock struct {
	store  *Store
	id     C.uintptr_t
	onWait func(why error)
	caller caller

	key      int64
	slot     int
	token    int64
	tokenErr error

	traceParent string

	mu   sync.Mutex
	c    *C.hf_lock // nil once it is released
	inTx bool       // a transaction runs on its session
	lost chan struct{}
	why  *Error // of the loss

	asked chan string // has room for one; nil: nobody listens
}

// Lock acquires a lock by its label, or by its name in the registry. It waits for it unless an
// option says otherwise.
func (s *Store) Lock(ctx context.Context, label string, options ...LockOption) (*Lock, error) {
	config := newLockConfig(options)
	return s.lock(ctx, []Target{LabelAs(label, config.as)}, config)
}

// LockAll acquires a set, all or none, in the order of the keys.
func (s *Store) LockAll(ctx context.Context, targets []Target, options ...LockOption) (*Lock, error) {
	return s.lock(ctx, targets, newLockConfig(options))
}

func (s *Store) lock(ctx context.Context, targets []Target, config *lockConfig) (*Lock, error) {
	return s.acquire(ctx, config, func(spec *C.hf_lock_spec, a *arena, lock **C.hf_lock, e *C.hf_error) (C.hf_status, error) {
		first, err := writeTargets(targets, a)
		if err != nil {
			return 0, err
		}
		spec.targets, spec.target_count = first, C.size_t(len(targets))
		return C.hf_lock_acquire(s.c, spec, lock, e), nil
	})
}

func newLockConfig(options []LockOption) *lockConfig {
	config := &lockConfig{wait: -1}
	for _, option := range options {
		option.setLock(config)
	}
	return config
}

func (config *lockConfig) write(spec *C.hf_lock_spec, a *arena) error {
	if config.slots < 0 || config.slots > C.HF_SLOTS_MAX {
		return refuse(ErrInvalid, "", "%d is not a number of slots", config.slots)
	}
	spec.size = C.sizeof_hf_lock_spec
	spec.wait_ms = milliseconds(config.wait)
	spec.flags = config.flags
	spec.slots = C.uint(config.slots)
	spec.owner = config.owner.orNew()
	spec.traceparent = a.optional(config.traceParent)
	if config.lease != 0 {
		spec.lifetime = C.HF_LEASE
		spec.lease_ms = settingMs(config.lease)
	}
	if config.shared {
		spec.mode = C.HF_SHARED
	}
	return a.check()
}

type acquireFn func(*C.hf_lock_spec, *arena, **C.hf_lock, *C.hf_error) (C.hf_status, error)

func (s *Store) acquire(ctx context.Context, config *lockConfig, call acquireFn) (*Lock, error) {
	var a arena
	var e C.hf_error
	defer a.free()
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	spec := (*C.hf_lock_spec)(a.alloc(C.sizeof_hf_lock_spec))
	if err := config.write(spec, &a); err != nil {
		return nil, err
	}
	cancel, err := cancelBy(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel.end()
	spec.cancel = cancel.handle

	lock := &Lock{store: s, onWait: config.onWait, lost: make(chan struct{})}
	if config.yields {
		lock.asked = make(chan string, 1)
	}
	lock.id = keep(lock)
	C.hfgo_watch(spec, lock.id, C.bool(config.onWait != nil), C.bool(config.yields))
	var c *C.hf_lock
	status, err := call(spec, &a, &c, &e)
	if err == nil && status != C.HF_OK {
		err = failed(ctx, status, &e)
	}
	if err == nil {
		err = lock.take(c)
	} else {
		forget(lock.id)
	}
	if lock.caller.hasLeft() {
		lock.free()
	}
	lock.caller.takeUp()
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// take makes the lock the owner of c. What never changes is read now, so that it needs no C later.
func (l *Lock) take(c *C.hf_lock) error {
	var token C.int64_t
	var e C.hf_error
	l.key, l.slot = int64(C.hf_lock_key(c)), int(C.hf_lock_slot(c))
	if status := C.hf_lock_token(c, &token, &e); status != C.HF_OK {
		l.tokenErr = newError(status, &e)
	}
	l.token = int64(token)
	l.traceParent = C.GoString(C.hf_lock_traceparent(c))
	l.mu.Lock()
	l.c = c
	l.mu.Unlock()
	l.store.mu.Lock()
	l.store.locks[l] = struct{}{}
	closed := l.store.closed
	l.store.mu.Unlock()
	if closed {
		l.free()
		return refuse(ErrInterrupted, "", "the store was closed")
	}
	return nil
}

// lose may come before take, and never blocks.
func (l *Lock) lose(why *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = why
		close(l.lost)
	}
}

// ask never blocks: of those whom nobody has heard of yet, the last one counts. Only the store's own
// goroutine sends.
func (l *Lock) ask(who string) {
	select {
	case <-l.asked:
	default:
	}
	l.asked <- who
}

// Asked receives who asks for the lock, once for each, a second or two after it began to. Whoever
// finishes and releases the lock hands it to the one that asked, whoever else waits; to go on is to
// refuse. Without Yielding it is nil, which never receives.
func (l *Lock) Asked() <-chan string { return l.asked }

// Lost is closed when the lock is lost, and never otherwise.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Err says why the lock was lost; nil: it was not.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		return nil
	}
	return l.why
}

// Token is the fencing token: greater than every earlier one. ErrNoSchema: there are no tokens.
func (l *Lock) Token() (int64, error) { return l.token, l.tokenErr }

// Key is the key of the lock, of a set the smallest; the id of a table.
func (l *Lock) Key() int64 { return l.key }

// Slot is 1 to the number of slots, or 0.
func (l *Lock) Slot() int { return l.slot }

// Held tells whether the lock is held, as far as the library knows by now.
func (l *Lock) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.c != nil && C.hf_lock_get_state(l.c) == C.HF_STATE_HELD
}

// Note adds an event to the lock's history, in the background; it is a word of small letters and '_'.
func (l *Lock) Note(event, detail string) {
	var a arena
	defer a.free()
	word, text := a.text(event), a.optional(detail)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c != nil && a.check() == nil {
		C.hf_lock_note(l.c, word, text)
	}
}

// Release gives the lock back. ErrLost: it had been lost before. Releasing twice is ErrInvalid.
func (l *Lock) Release() error {
	var e C.hf_error
	if !l.store.hold() {
		return refuse(ErrInvalid, "", "the store is closed")
	}
	defer l.store.leave()
	c, err := l.give()
	if err != nil {
		return err
	}
	status := C.hf_lock_release(c, &e)
	l.drop(c)
	if status == C.HF_OK {
		return nil
	}
	failure := newError(status, &e)
	if status == C.HF_LOST {
		l.lose(failure)
	}
	return failure
}

// handle is c, unless a transaction has the session for itself. The mutex is held.
func (l *Lock) handle() (*C.hf_lock, error) {
	if l.inTx {
		return nil, refuse(ErrOrder, "wait until it has ended",
			"a transaction is open on the lock's session")
	}
	if l.c == nil {
		return nil, refuse(ErrInvalid, "", "the lock is released, or its store closed")
	}
	return l.c, nil
}

// give takes the handle out of the lock: whoever has it ends it.
func (l *Lock) give() (*C.hf_lock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.handle()
	if err == nil {
		l.c = nil
	}
	return c, err
}

// lend lets a transaction have the session, until takeBack.
func (l *Lock) lend() (*C.hf_lock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.handle()
	l.inTx = l.inTx || err == nil
	return c, err
}

func (l *Lock) takeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inTx = false
}

// drop frees the handle. The library calls nobody back for it any more.
func (l *Lock) drop(c *C.hf_lock) {
	C.hf_lock_free(c)
	forget(l.id)
	l.store.mu.Lock()
	delete(l.store.locks, l)
	l.store.mu.Unlock()
}

func (l *Lock) free() {
	if c, err := l.give(); err == nil {
		l.drop(c)
	}
}

// WithLock acquires a lock, calls fn and releases it on every path, panics included. It returns fn's
// error, else ErrLost if the lock was lost meanwhile.
func (s *Store) WithLock(ctx context.Context, label string, fn func(*Lock) error, options ...LockOption) (err error) {
	lock, err := s.Lock(ctx, label, options...)
	if err != nil {
		return err
	}
	defer func() {
		if failure := lock.Release(); err == nil {
			err = failure
		}
	}()
	return fn(lock)
}
