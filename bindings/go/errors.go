package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
)

// Status says what came of a call. Each is an error of its own, for errors.Is:
//
//	if errors.Is(err, holdfast.ErrNotAcquired) { … }
type Status int

const (
	ErrInvalid       = Status(C.HF_INVALID)
	ErrBadData       = Status(C.HF_BAD_DATA)
	ErrNoMemory      = Status(C.HF_NO_MEMORY)
	ErrUnreachable   = Status(C.HF_UNREACHABLE)
	ErrConfig        = Status(C.HF_CONFIG)
	ErrNoSchema      = Status(C.HF_NO_SCHEMA)
	ErrNotAcquired   = Status(C.HF_NOT_ACQUIRED)
	ErrLost          = Status(C.HF_LOST)
	ErrOrder         = Status(C.HF_ORDER)
	ErrDeadlock      = Status(C.HF_DEADLOCK)
	ErrCollision     = Status(C.HF_COLLISION)
	ErrSlots         = Status(C.HF_SLOTS)
	ErrQuota         = Status(C.HF_QUOTA)
	ErrNoTransaction = Status(C.HF_NO_TRANSACTION)
	ErrForked        = Status(C.HF_FORKED)
	ErrInterrupted   = Status(C.HF_INTERRUPTED)
	ErrDatabase      = Status(C.HF_DATABASE)
	ErrSystem        = Status(C.HF_SYSTEM)
	ErrInDoubt       = Status(C.HF_IN_DOUBT)
	ErrExhausted     = Status(C.HF_EXHAUSTED)
	ErrCursor        = Status(C.HF_CURSOR)
	ErrRolledBack    = Status(C.HF_ROLLED_BACK)
)

// Error is the status in words.
func (s Status) Error() string {
	return C.GoString(C.hf_status_text(C.hf_status(s)))
}

// Name is the status as C has it, such as "HF_NOT_ACQUIRED".
func (s Status) Name() string {
	return C.GoString(C.hf_status_name(C.hf_status(s)))
}

// Error is what every failing call returns. errors.Is finds its Status, and where a context ended
// the call, the context's error as well; errors.As finds the rest.
type Error struct {
	Status   Status
	SQLState string // "" when it is not from a server
	Message  string // one line: what, where, who
	Hint     string // what to do, or ""
	Position int    // the character of the SQL statement it is about, from 1; 0: none

	cause error
	run   *txRun // the transaction that a statement failed in
	c     *C.hf_error
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return "holdfast: " + e.Message
	}
	return "holdfast: " + e.Message + " (" + e.Hint + ")"
}

// Is tells errors.Is whether target is the error's Status.
func (e *Error) Is(target error) bool {
	status, ok := target.(Status)
	return ok && status == e.Status
}

// Unwrap returns the context's error, the application's or the driver's, where there is one.
func (e *Error) Unwrap() error {
	return e.cause
}

func newError(status C.hf_status, c *C.hf_error) *Error {
	return &Error{
		Status:   Status(status),
		SQLState: C.GoString(&c.sqlstate[0]),
		Message:  C.GoString(&c.message[0]),
		Hint:     C.GoString(&c.hint[0]),
		Position: int(c.position),
	}
}

// failed is nil for HF_OK. A call that was interrupted because its context ended says so.
func failed(ctx context.Context, status C.hf_status, c *C.hf_error) *Error {
	if status == C.HF_OK {
		return nil
	}
	err := newError(status, c)
	if status == C.HF_INTERRUPTED {
		err.cause = ctx.Err()
	}
	return err
}

func refuse(status Status, hint, format string, args ...any) *Error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...), Hint: hint}
}

func ended(ctx context.Context) *Error {
	err := refuse(ErrInterrupted, "", "not begun: %v", ctx.Err())
	err.cause = ctx.Err()
	return err
}
