package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"math"
	"strings"
	"time"
	"unsafe"
)

// arena is the memory that C reads during a call.
type arena struct {
	blocks []unsafe.Pointer
	hasNul bool
}

func (a *arena) add(block unsafe.Pointer) unsafe.Pointer {
	a.blocks = append(a.blocks, block)
	return block
}

// alloc gives memory that is zero.
func (a *arena) alloc(size C.size_t) unsafe.Pointer {
	return a.add(unsafe.Pointer(C.CBytes(make([]byte, size))))
}

// text is for what C ends with NUL. A string that has one would be cut, which check reports.
func (a *arena) text(s string) *C.char {
	a.hasNul = a.hasNul || strings.IndexByte(s, 0) >= 0
	return (*C.char)(a.add(unsafe.Pointer(C.CString(s))))
}

// optional is NULL for "".
func (a *arena) optional(s string) *C.char {
	if s == "" {
		return nil
	}
	return a.text(s)
}

func (a *arena) check() error {
	if a.hasNul {
		return refuse(ErrInvalid, "", "a text has a NUL byte in it")
	}
	return nil
}

func (a *arena) free() {
	for _, block := range a.blocks {
		C.free(block)
	}
}

// canceller ends a call of C when a context ends.
type canceller struct {
	handle     *C.hf_cancel
	stop, done chan struct{}
}

// cancelBy makes one, with a NULL handle for a context that never ends.
func cancelBy(ctx context.Context) (*canceller, error) {
	c := &canceller{}
	if ctx.Done() == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	var e C.hf_error
	if status := C.hf_cancel_create(&c.handle, &e); status != C.HF_OK {
		return nil, newError(status, &e)
	}
	c.stop, c.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(c.done)
		select {
		case <-ctx.Done():
			C.hf_cancel_trigger(c.handle)
		case <-c.stop:
		}
	}()
	return c, nil
}

// now ends what comes next, too, if the context has ended but its goroutine has not come to it.
func (c *canceller) now(ctx context.Context) {
	if c.handle != nil && ctx.Err() != nil {
		C.hf_cancel_trigger(c.handle)
	}
}

// end is called when all calls that have the handle have returned.
func (c *canceller) end() {
	if c.handle != nil {
		close(c.stop)
		<-c.done
		C.hf_cancel_free(c.handle)
	}
}

// apart runs a call that the library cannot end early. If the context ends first, the call goes on
// by itself and its result is dropped: a call that reads is then interrupted, and of one that
// changes something nobody knows whether it will.
func apart[T any](ctx context.Context, s *Store, changes bool, call func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, ended(ctx)
	}
	if err := s.enter(); err != nil {
		return none, err
	}
	return await(ctx, changes, func() (T, error) {
		defer s.leave()
		return call()
	}, func(T) {})
}

type outcome[T any] struct {
	value T
	err   error
}

// await is apart without a store; drop gets a result that nobody waits for.
func await[T any](ctx context.Context, changes bool, call func() (T, error), drop func(T)) (T, error) {
	if ctx.Done() == nil {
		return call()
	}
	done := make(chan outcome[T], 1)
	go func() {
		value, err := call()
		done <- outcome[T]{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	go func() {
		if r := <-done; r.err == nil {
			drop(r.value)
		}
	}()
	err := refuse(ErrInterrupted, "", "given up: %v", ctx.Err())
	if changes {
		err = refuse(ErrInDoubt, "look before doing it again",
			"given up: %v; the call goes on, and what it changes may or may not be changed", ctx.Err())
	}
	err.cause = ctx.Err()
	var none T
	return none, err
}

// milliseconds rounds up, so that a wait is never shorter than asked for; a negative one is for ever.
func milliseconds(d time.Duration) C.int64_t {
	if d < 0 {
		return -1
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return C.int64_t(ms)
}

// settingMs is for options of C where 0 is the default, and int the type.
func settingMs(d time.Duration) C.int {
	ms := milliseconds(d)
	if ms > math.MaxInt32 {
		return math.MaxInt32
	}
	return C.int(ms)
}
