package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

type networkConfig struct {
	schema, latest, oldest string
	readWait               time.Duration
}

// NetworkOption is an option of Network.
type NetworkOption func(*networkConfig)

// InSchema names the schema on PostgreSQL, or the file of a local store; else ingest_<name>.
func InSchema(schema string) NetworkOption {
	return func(c *networkConfig) { c.schema = schema }
}

// CursorNames are those of the latest and of the oldest ledger, where they are not the usual ones.
func CursorNames(latest, oldest string) NetworkOption {
	return func(c *networkConfig) { c.latest, c.oldest = latest, oldest }
}

// ReadWait bounds how long a read waits for a table that somebody locks: then ErrNotAcquired.
func ReadWait(d time.Duration) NetworkOption {
	return func(c *networkConfig) { c.readWait = d }
}

// Network is the ledgers of one network in a store. All goroutines may use it.
type Network struct {
	store *Store
	c     *C.hf_network
}

// Network opens the ledgers of a network; only its names are checked.
func (s *Store) Network(name string, options ...NetworkOption) (*Network, error) {
	var a arena
	var config networkConfig
	var e C.hf_error
	defer a.free()
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	for _, option := range options {
		option(&config)
	}
	given := (*C.hf_network_options)(a.alloc(C.sizeof_hf_network_options))
	given.size = C.sizeof_hf_network_options
	given.name = a.text(name)
	given.schema = a.optional(config.schema)
	given.latest_cursor = a.optional(config.latest)
	given.oldest_cursor = a.optional(config.oldest)
	given.read_wait_ms = milliseconds(config.readWait)
	if err := a.check(); err != nil {
		return nil, err
	}
	var c *C.hf_network
	if status := C.hf_network_open(s.c, given, &c, &e); status != C.HF_OK {
		return nil, newError(status, &e)
	}
	network := &Network{s, c}
	runtime.SetFinalizer(network, func(n *Network) { C.hf_network_free(n.c) }) // names alone
	return network, nil
}

// onCursor runs a call about a cursor, which keeps the network alive meanwhile.
func onCursor[T any](ctx context.Context, n *Network, changes bool, name string,
	call func(name *C.char, e *C.hf_error) (T, C.hf_status)) (T, error) {
	return apart(ctx, n.store, changes, func() (T, error) {
		var a arena
		var e C.hf_error
		var none T
		defer a.free()
		defer runtime.KeepAlive(n)
		text := a.text(name)
		if err := a.check(); err != nil {
			return none, err
		}
		value, status := call(text, &e)
		if status != C.HF_OK {
			return none, newError(status, &e)
		}
		return value, nil
	})
}

// Cursor is a row of ingest_store.
type Cursor struct {
	Name  string
	Value int64
}

// Cursor reads a cursor. found false: there is no such row yet, which is not the same as zero.
func (n *Network) Cursor(ctx context.Context, name string) (value int64, found bool, err error) {
	type row struct {
		found C.bool
		value C.int64_t
	}
	got, err := onCursor(ctx, n, false, name, func(text *C.char, e *C.hf_error) (r row, status C.hf_status) {
		status = C.hf_cursor_get(n.c, text, &r.found, &r.value, e)
		return r, status
	})
	return int64(got.value), bool(got.found), err
}

// Cursors reads every cursor, by name.
func (n *Network) Cursors(ctx context.Context) ([]Cursor, error) {
	return onCursor(ctx, n, false, "", func(_ *C.char, e *C.hf_error) ([]Cursor, C.hf_status) {
		list := &[]Cursor{}
		id := keep(list)
		defer forget(id)
		status := C.hfgo_cursors(n.c, id, e)
		return *list, status
	})
}

func (n *Network) change(ctx context.Context, name string, call func(text *C.char, e *C.hf_error) C.hf_status) error {
	_, err := onCursor(ctx, n, true, name, func(text *C.char, e *C.hf_error) (bool, C.hf_status) {
		return true, call(text, e)
	})
	return err
}

// SetCursor creates the table and the row where they are missing.
func (n *Network) SetCursor(ctx context.Context, name string, value int64) error {
	return n.change(ctx, name, func(text *C.char, e *C.hf_error) C.hf_status {
		return C.hf_cursor_set(n.c, text, C.int64_t(value), e)
	})
}

// LowerCursor lowers the cursor, or leaves it when it is lower already. This and the next two return
// ErrCursor, and change nothing, when the row is missing or is not where it should be.
func (n *Network) LowerCursor(ctx context.Context, name string, value int64) error {
	return n.change(ctx, name, func(text *C.char, e *C.hf_error) C.hf_status {
		return C.hf_cursor_set_min(n.c, text, C.int64_t(value), e)
	})
}

// AdvanceCursor moves the cursor to value, only from value - 1.
func (n *Network) AdvanceCursor(ctx context.Context, name string, value int64) error {
	return n.change(ctx, name, func(text *C.char, e *C.hf_error) C.hf_status {
		return C.hf_cursor_advance(n.c, text, C.int64_t(value), e)
	})
}

// SwapCursor moves the cursor to to, only from from.
func (n *Network) SwapCursor(ctx context.Context, name string, from, to int64) error {
	return n.change(ctx, name, func(text *C.char, e *C.hf_error) C.hf_status {
		return C.hf_cursor_swap(n.c, text, C.int64_t(from), C.int64_t(to), e)
	})
}

// Range is ledgers, both ends included.
type Range struct {
	From, To int64
}

// Gaps are the ledgers between from and to that are missing. from 0: the first ledger that is wanted
// and kept; to 0: the latest one.
func (n *Network) Gaps(ctx context.Context, from, to int64) ([]Range, error) {
	return onCursor(ctx, n, false, "", func(_ *C.char, e *C.hf_error) ([]Range, C.hf_status) {
		var first *C.hf_range
		var count C.size_t
		status := C.hf_network_gaps(n.c, C.int64_t(from), C.int64_t(to), &first, &count, e)
		if status != C.HF_OK {
			return nil, status
		}
		defer C.free(unsafe.Pointer(first))
		gaps := make([]Range, int(count))
		for i, gap := range unsafe.Slice(first, int(count)) {
			gaps[i] = Range{int64(gap.from), int64(gap.to)}
		}
		return gaps, status
	})
}
