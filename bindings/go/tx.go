package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"sync"
	"time"
	"unsafe"
)

// Isolation is the level of a transaction.
type Isolation int

const (
	Serializable   = Isolation(C.HF_SERIALIZABLE)
	RepeatableRead = Isolation(C.HF_REPEATABLE_READ)
	ReadCommitted  = Isolation(C.HF_READ_COMMITTED)
)

// TxStats is what became of one Transact, told once for each label, or once without one.
type TxStats struct {
	Label    string
	Key      int64
	Attempts int
	Wait     time.Duration // from asking for the labels to having them, all attempts together
	Hold     time.Duration // from having them to the end
	Outcome  Status        // 0: committed
}

type txConfig struct {
	isolation              Isolation
	readOnly, retryUnique  bool
	expectOperation        bool
	deadline               time.Duration
	maxAttempts            int
	backoffMin, backoffMax time.Duration
	onStats                func(TxStats)
	database               string
	owner                  Owner
	traceParent            string
}

// TxOption is an option of Transact.
type TxOption interface{ setTx(*txConfig) }

type txOption func(*txConfig)

func (o txOption) setTx(c *txConfig) { o(c) }

// WithIsolation is the level; the default is Serializable.
func WithIsolation(level Isolation) TxOption {
	return txOption(func(c *txConfig) { c.isolation = level })
}

// ReadOnly transactions need no transaction id and leave no marker.
func ReadOnly() TxOption { return txOption(func(c *txConfig) { c.readOnly = true }) }

// RetryUnique also runs the transaction again after a unique violation (23505).
func RetryUnique() TxOption { return txOption(func(c *txConfig) { c.retryUnique = true }) }

// Deadline bounds all attempts together, up to COMMIT.
func Deadline(d time.Duration) TxOption { return txOption(func(c *txConfig) { c.deadline = d }) }

// Attempts is how often the transaction may run; 0 is the library's default, 20.
func Attempts(most int) TxOption { return txOption(func(c *txConfig) { c.maxAttempts = most }) }

// Backoff bounds the pauses between attempts.
func Backoff(min, max time.Duration) TxOption {
	return txOption(func(c *txConfig) { c.backoffMin, c.backoffMax = min, max })
}

// OnStats is told what became of the transaction, before Transact returns.
func OnStats(fn func(TxStats)) TxOption { return txOption(func(c *txConfig) { c.onStats = fn }) }

// ExpectOperation warns, in the log, about labels without an "Operation:" part.
func ExpectOperation() TxOption { return txOption(func(c *txConfig) { c.expectOperation = true }) }

// InDatabase names the file of a local store, without ".db".
func InDatabase(name string) TxOption { return txOption(func(c *txConfig) { c.database = name }) }

func (config *txConfig) write(options *C.hf_tx_options, a *arena) error {
	if config.maxAttempts < 0 || config.deadline < 0 || config.isolation < 0 {
		return refuse(ErrInvalid, "", "an option of the transaction is negative")
	}
	options.size = C.sizeof_hf_tx_options
	options.isolation = C.hf_isolation(config.isolation)
	options.read_only = C.bool(config.readOnly)
	options.retry_unique = C.bool(config.retryUnique)
	options.deadline_ms = milliseconds(config.deadline)
	options.max_attempts = C.uint(config.maxAttempts)
	options.backoff_min_ms = settingMs(config.backoffMin)
	options.backoff_max_ms = settingMs(config.backoffMax)
	options.expect_operation = C.bool(config.expectOperation)
	options.database = a.optional(config.database)
	options.owner = config.owner.orNew()
	options.traceparent = a.optional(config.traceParent)
	return a.check()
}

// txRun is one Transact with all its attempts.
type txRun struct {
	ctx    context.Context
	cancel *canceller
	config txConfig
	caller caller

	mu sync.Mutex
	c  *C.hf_tx // nil once it has ended
}

// Tx is one attempt, for fn of Transact alone: when fn has returned, every call on it is ErrInvalid.
// A context that ends ends its statements.
type Tx struct {
	run         *txRun
	attempt     int
	traceParent string
	over        bool // guarded by run.mu
}

// Transact acquires the labels, then runs fn in a transaction whose snapshot is younger than they
// are, and commits. It runs fn again after a serialisation failure, a deadlock or a broken
// connection, so fn must have no effect outside of tx.
//
// nil: it is committed, once. An error of fn's own rolls back and is returned as it is; a panic
// rolls back and goes on. ErrInDoubt: the connection broke during COMMIT, and nobody can say.
// ErrExhausted, ErrNotAcquired: not committed.
func (s *Store) Transact(ctx context.Context, labels []Target, fn func(tx *Tx) error, options ...TxOption) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return transact(ctx, labels, fn, options,
		func(options *C.hf_tx_options, tx **C.hf_tx, e *C.hf_error) C.hf_status {
			return C.hf_tx_begin(s.c, options, tx, e)
		})
}

// Transact runs fn in a transaction on the session that holds the lock, which must be Private: what
// it writes is written under the lock or not at all. Until fn has returned the lock can neither be
// released nor run another one: ErrOrder. ErrLost: the session has ended, and nothing was committed.
func (l *Lock) Transact(ctx context.Context, fn func(tx *Tx) error, options ...TxOption) error {
	if err := l.store.enter(); err != nil {
		return err
	}
	defer l.store.leave()
	c, err := l.lend()
	if err != nil {
		return err
	}
	defer l.takeBack()
	return transact(ctx, nil, fn, options,
		func(options *C.hf_tx_options, tx **C.hf_tx, e *C.hf_error) C.hf_status {
			return C.hf_tx_begin_on(c, options, tx, e)
		})
}

type beginFn func(*C.hf_tx_options, **C.hf_tx, *C.hf_error) C.hf_status

func transact(ctx context.Context, labels []Target, fn func(*Tx) error, given []TxOption, begin beginFn) error {
	var a arena
	defer a.free()
	if fn == nil {
		return refuse(ErrInvalid, "", "Transact needs a function")
	}
	run := &txRun{ctx: ctx}
	for _, option := range given {
		option.setTx(&run.config)
	}
	options := (*C.hf_tx_options)(a.alloc(C.sizeof_hf_tx_options))
	if err := run.config.write(options, &a); err != nil {
		return err
	}
	first, err := writeTargets(labels, &a)
	if err != nil {
		return err
	}
	options.labels, options.label_count = first, C.size_t(len(labels))
	if run.config.onStats != nil {
		id := keep(run)
		defer forget(id)
		C.hfgo_count(options, id)
	}
	if run.cancel, err = cancelBy(ctx); err != nil {
		return err
	}
	defer run.cancel.end()
	options.cancel = run.cancel.handle
	err = run.attempts(begin, options, fn)
	run.caller.takeUp()
	return err
}

func (run *txRun) attempts(begin beginFn, options *C.hf_tx_options, fn func(*Tx) error) error {
	var e C.hf_error
	var c *C.hf_tx
	if status := begin(options, &c, &e); status != C.HF_OK {
		return failed(run.ctx, status, &e)
	}
	run.c = c
	defer run.free() // rolls back when fn panics, or ends its goroutine
	for {
		tx := &Tx{run: run, attempt: int(C.hf_tx_attempt(run.c)), traceParent: C.GoString(C.hf_tx_traceparent(run.c))}
		reason := fn(tx)
		status, result := run.end(tx, reason, &e)
		switch {
		case status == C.HF_AGAIN:
			continue
		case status == C.HF_OK:
			return nil
		case reason != nil && status == result:
			return reason // it is fn's own, or what a statement of fn's has said
		}
		err := failed(run.ctx, status, &e)
		if err.cause == nil {
			err.cause = reason
		}
		return err
	}
}

// end tells the library what came of fn. A failure of a statement is handed back to it, so that it
// judges by that; whatever else fn returns is the application's own reason.
func (run *txRun) end(tx *Tx, reason error, e *C.hf_error) (status, result C.hf_status) {
	run.mu.Lock()
	defer run.mu.Unlock()
	tx.over = true
	var failure *Error
	switch {
	case reason == nil:
		result = C.HF_OK
	case errors.As(reason, &failure) && failure.run == run && failure.c != nil:
		result, *e = failure.c.code, *failure.c
	default:
		result = C.HF_ROLLED_BACK
	}
	run.cancel.now(run.ctx)
	return C.hf_tx_end(run.c, result, e), result
}

func (run *txRun) free() {
	run.mu.Lock()
	defer run.mu.Unlock()
	C.hf_tx_free(run.c)
	run.c = nil
}

// do runs one step, unless the attempt is over.
func (tx *Tx) do(step func(c *C.hf_tx, e *C.hf_error) C.hf_status) error {
	tx.run.mu.Lock()
	defer tx.run.mu.Unlock()
	if tx.over || tx.run.c == nil {
		return refuse(ErrInvalid, "use it only in the function that it was given to",
			"the transaction has ended")
	}
	tx.run.cancel.now(tx.run.ctx)
	e := new(C.hf_error)
	err := failed(tx.run.ctx, step(tx.run.c, e), e)
	if err == nil {
		return nil
	}
	err.run, err.c = tx.run, e
	return err
}

// Attempt is 1, 2, …
func (tx *Tx) Attempt() int { return tx.attempt }

// Serialize acquires one more label. It is refused after the first statement, whose snapshot is older.
func (tx *Tx) Serialize(label Target) error {
	var a arena
	defer a.free()
	target, err := writeTargets([]Target{label}, &a)
	if err != nil {
		return err
	}
	return tx.do(func(c *C.hf_tx, e *C.hf_error) C.hf_status {
		return C.hf_tx_serialize(c, target, e)
	})
}

// Query runs one statement with parameters $1… and returns its rows. A parameter is nil, a string,
// a []byte (sent as binary), a number, a bool, a time.Time or a driver.Valuer.
func (tx *Tx) Query(sql string, args ...any) (*Rows, error) {
	return tx.query(sql, false, args)
}

// QueryBinary asks for values in PostgreSQL's wire format; those of a local store are big endian.
func (tx *Tx) QueryBinary(sql string, args ...any) (*Rows, error) {
	return tx.query(sql, true, args)
}

func (tx *Tx) query(sql string, binary bool, args []any) (*Rows, error) {
	var a arena
	var rows *C.hf_rows
	defer a.free()
	text, values, err := writeStatement(sql, args, &a)
	if err != nil {
		return nil, err
	}
	err = tx.do(func(c *C.hf_tx, e *C.hf_error) C.hf_status {
		return C.hf_tx_query(c, text, C.size_t(len(args)), values, C.bool(binary), &rows, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.hf_rows_free(rows)
	return copyRows(rows), nil
}

// QueryRow runs a statement and scans its first row; sql.ErrNoRows when there is none.
func (tx *Tx) QueryRow(sql string, args ...any) *Row {
	rows, err := tx.Query(sql, args...)
	return &Row{rows, err}
}

// Exec runs a statement and returns how many rows it has changed.
func (tx *Tx) Exec(sql string, args ...any) (int64, error) {
	rows, err := tx.Query(sql, args...)
	if err != nil {
		return 0, err
	}
	return rows.affected, nil
}

// Queue adds a statement that is sent together with the next Query, or with COMMIT; a failure is
// told there.
func (tx *Tx) Queue(sql string, args ...any) error {
	var a arena
	defer a.free()
	text, values, err := writeStatement(sql, args, &a)
	if err != nil {
		return err
	}
	return tx.do(func(c *C.hf_tx, e *C.hf_error) C.hf_status {
		return C.hf_tx_queue(c, text, C.size_t(len(args)), values, e)
	})
}

func writeStatement(sql string, args []any, a *arena) (*C.char, *C.hf_value, error) {
	text := a.text(sql)
	if len(args) == 0 {
		return text, nil, a.check()
	}
	first := (*C.hf_value)(a.alloc(C.size_t(len(args)) * C.sizeof_hf_value))
	to := unsafe.Slice(first, len(args))
	for i, arg := range args {
		if err := writeValue(arg, &to[i], a); err != nil {
			return nil, nil, refuse(ErrInvalid, "", "parameter $%d: %v", i+1, err)
		}
	}
	return text, first, a.check()
}
