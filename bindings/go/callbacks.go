package holdfast

// #include "shim.h"
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// C keeps the numbers of Go values, never pointers to them.
var (
	values    sync.Map
	lastValue uintptr
)

func keep(value any) C.uintptr_t {
	id := atomic.AddUintptr(&lastValue, 1)
	values.Store(id, value)
	return C.uintptr_t(id)
}

func forget(id C.uintptr_t) {
	values.Delete(uintptr(id))
}

func kept[T any](id C.uintptr_t) (value T) {
	found, _ := values.Load(uintptr(id))
	value, _ = found.(T)
	return value
}

// caller runs functions of the application below C. Neither a panic nor runtime.Goexit may unwind
// C's frames, which would leave the library's mutexes locked: each function has a goroutine of its
// own, and how it ended is taken up when C has returned.
type caller struct {
	panicked any
	exited   bool
}

func (c *caller) run(fn func()) {
	done := make(chan struct{})
	go func() {
		returned := false
		defer close(done)
		defer func() {
			if reason := recover(); reason != nil {
				c.panicked = reason
			} else if !returned {
				c.exited = true
			}
		}()
		fn()
		returned = true
	}()
	<-done
}

func (c *caller) hasLeft() bool { return c.panicked != nil || c.exited }

func (c *caller) takeUp() {
	if c.panicked != nil {
		panic(c.panicked)
	}
	if c.exited {
		runtime.Goexit()
	}
}

// Runs in hf_store_dispatch, which only the store's own goroutine calls.
//
//export holdfastLost
func holdfastLost(id C.uintptr_t, why *C.hf_error) {
	if lock := kept[*Lock](id); lock != nil {
		lock.lose(newError(why.code, why))
	}
}

// Runs where holdfastLost does.
//
//export holdfastAsked
func holdfastAsked(id C.uintptr_t, who *C.hf_error) {
	if lock := kept[*Lock](id); lock != nil {
		lock.ask(C.GoString(&who.message[0]))
	}
}

//export holdfastWaits
func holdfastWaits(id C.uintptr_t, why *C.hf_error) {
	if lock := kept[*Lock](id); lock != nil {
		lock.caller.run(func() { lock.onWait(newError(why.code, why)) })
	}
}

//export holdfastStats
func holdfastStats(id C.uintptr_t, stats *C.hf_tx_stats) {
	run := kept[*txRun](id)
	if run == nil {
		return
	}
	told := TxStats{
		Key:      int64(stats.key),
		Attempts: int(stats.attempts),
		Wait:     time.Duration(stats.wait_ms) * time.Millisecond,
		Hold:     time.Duration(stats.hold_ms) * time.Millisecond,
		Outcome:  Status(stats.outcome),
	}
	if stats.label != nil {
		told.Label = C.GoStringN(stats.label, C.int(stats.label_size))
	}
	run.caller.run(func() { run.config.onStats(told) })
}

//export holdfastCursor
func holdfastCursor(id C.uintptr_t, name *C.char, value C.int64_t) {
	list := kept[*[]Cursor](id)
	*list = append(*list, Cursor{C.GoString(name), int64(value)})
}

//export holdfastContext
func holdfastContext(id C.uintptr_t, context *C.char) {
	list := kept[*[]string](id)
	*list = append(*list, C.GoString(context))
}

//export holdfastFinding
func holdfastFinding(id C.uintptr_t, level C.int, topic, text, remedy *C.char) {
	list := kept[*[]Finding](id)
	*list = append(*list,
		Finding{Level(level), C.GoString(topic), C.GoString(text), C.GoString(remedy)})
}
