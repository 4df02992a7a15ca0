package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"time"
)

// LockView is one advisory lock that is held or waited for; strings are "" when unknown.
type LockView struct {
	Key          int64
	IsPair       bool
	Shared       bool
	Waiting      bool
	Ours         bool // acquired by Holdfast with records: label, host, pid and age are exact
	SessionKnown bool // Transaction is known
	Transaction  bool // it ends with a transaction
	Label        string
	Application  string
	Host         string
	PID          int           // of the client process, or 0
	BackendPID   int           // PostgreSQL's, or 0
	Age          time.Duration // since granted, or since the wait began; negative: unknown
	AgeIsBound   bool          // it is at most Age
	Token        int64         // 0: none
	Slot         int
	BlockedBy    string        // "4711,4712": what a waiter waits for
	Name         string        // in the store's registry
	Pattern      string        // of that entry
	Idle         time.Duration // outside of a transaction; negative: it is not, or not known
	IdleHidden   bool          // it is not known
	Seen         time.Duration // in a list of the past: how long ago it was seen last
	Times        int64         // in a list of the past: how often it was acquired
	KnownAs      string        // the well-known program that locks this key; a guess
	Lease        bool          // it is a lease, which lasts for Left if it is not renewed
	Left         time.Duration
	TraceParent  string // of a recorded hold that is traced
}

func newLockView(view *C.hf_lock_view) LockView {
	return LockView{
		Key:          int64(view.key),
		IsPair:       view.space == C.HF_PAIR,
		Shared:       view.mode == C.HF_SHARED,
		Waiting:      bool(view.waiting),
		Ours:         bool(view.ours),
		SessionKnown: bool(view.session_known),
		Transaction:  view.lifetime == C.HF_TRANSACTION,
		Label:        goText(view.label),
		Application:  goText(view.application),
		Host:         goText(view.host),
		PID:          int(view.pid),
		BackendPID:   int(view.backend_pid),
		Age:          time.Duration(view.age_ms) * time.Millisecond,
		AgeIsBound:   bool(view.age_is_bound),
		Token:        int64(view.token),
		Slot:         int(view.slot),
		BlockedBy:    goText(view.blocked_by),
		Name:         goText(view.name),
		Pattern:      goText(view.pattern),
		Idle:         time.Duration(view.idle_ms) * time.Millisecond,
		IdleHidden:   bool(view.idle_hidden),
		Seen:         time.Duration(view.seen_ms) * time.Millisecond,
		Times:        int64(view.times),
		KnownAs:      goText(view.known_as),
		Lease:        view.lifetime == C.HF_LEASE,
		Left:         time.Duration(view.left_ms) * time.Millisecond,
		TraceParent:  goText(view.traceparent),
	}
}

func (s *Store) list(ctx context.Context, read func(**C.hf_lock_list, *C.hf_error) C.hf_status) ([]LockView, error) {
	return apart(ctx, s, false, func() ([]LockView, error) {
		var list *C.hf_lock_list
		var e C.hf_error
		if status := read(&list, &e); status != C.HF_OK {
			return nil, newError(status, &e)
		}
		defer C.hf_lock_list_free(list)
		views := make([]LockView, int(C.hf_lock_list_count(list)))
		for i := range views {
			views[i] = newLockView(C.hf_lock_list_at(list, C.size_t(i)))
		}
		return views, nil
	})
}

// Locks is every advisory lock that is held or waited for now, by whatever program.
func (s *Store) Locks(ctx context.Context) ([]LockView, error) {
	return s.list(ctx, func(list **C.hf_lock_list, e *C.hf_error) C.hf_status {
		return C.hf_lock_list_read(s.c, list, e)
	})
}

// PastLocks is what was recorded in the last while (negative: ever), one view for each key.
func (s *Store) PastLocks(ctx context.Context, since time.Duration) ([]LockView, error) {
	return s.list(ctx, func(list **C.hf_lock_list, e *C.hf_error) C.hf_status {
		return C.hf_lock_list_read_past(s.c, milliseconds(since), list, e)
	})
}

// Init installs or upgrades the schema, and tells the versions before (0: none) and after.
func (s *Store) Init(ctx context.Context) (from, to int, err error) {
	type versions struct{ from, to C.int }
	got, err := apart(ctx, s, true, func() (v versions, err error) {
		var e C.hf_error
		if status := C.hf_store_init(s.c, &v.from, &v.to, &e); status != C.HF_OK {
			return v, newError(status, &e)
		}
		return v, nil
	})
	return int(got.from), int(got.to), err
}

// ClaimSchedule claims a run of a periodic job by the store's clock: due, and the start is recorded,
// if the period has passed since the last start; else wait is what is left. Call it while holding
// the job's lock.
func (s *Store) ClaimSchedule(ctx context.Context, label string, period time.Duration) (due bool, wait time.Duration, err error) {
	type claim struct {
		due  C.bool
		wait C.int64_t
	}
	got, err := apart(ctx, s, true, func() (c claim, err error) {
		var a arena
		var e C.hf_error
		defer a.free()
		text := a.text(label)
		if err := a.check(); err != nil {
			return c, err
		}
		status := C.hf_schedule_claim(s.c, text, milliseconds(period), &c.due, &c.wait, &e)
		if status != C.HF_OK {
			return c, newError(status, &e)
		}
		return c, nil
	})
	return bool(got.due), time.Duration(got.wait) * time.Millisecond, err
}

// Level is how bad a finding is.
type Level int

const (
	LevelOK      = Level(C.HF_LEVEL_OK)
	LevelWarning = Level(C.HF_LEVEL_WARNING)
	LevelProblem = Level(C.HF_LEVEL_PROBLEM)
)

// Finding is one topic of Examine; Remedy is "" when all is well.
type Finding struct {
	Level               Level
	Topic, Text, Remedy string
}

// Examine looks at the store as `holdfast doctor` does.
func (s *Store) Examine(ctx context.Context) ([]Finding, error) {
	return apart(ctx, s, false, func() ([]Finding, error) {
		var e C.hf_error
		list := &[]Finding{}
		id := keep(list)
		defer forget(id)
		if status := C.hfgo_examine(s.c, id, &e); status != C.HF_OK {
			return nil, newError(status, &e)
		}
		return *list, nil
	})
}
