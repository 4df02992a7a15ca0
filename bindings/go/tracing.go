package holdfast

// #include "shim.h"
import "C"

import "time"

// SpanKind is what a span is of.
type SpanKind int

const (
	SpanWait        = SpanKind(C.HF_SPAN_WAIT)        // an acquire that had to wait, or failed
	SpanHold        = SpanKind(C.HF_SPAN_HOLD)        // from the acquire to the release, or to the loss
	SpanTransaction = SpanKind(C.HF_SPAN_TRANSACTION) // all attempts together
)

// Span is a wait, a hold or a transaction that has ended. TraceParent, Parent and Link are as W3C
// Trace Context writes them, or "".
type Span struct {
	Kind        SpanKind
	Status      Status // 0, or how the call has failed
	Label       string // of the first target in key order, or ""
	Key         int64
	Shared      bool
	Slot        int
	Token       int64
	Start, End  time.Time
	TraceParent string // its own
	Parent      string
	Link        string // of a wait: the hold that was in its way first
}

// WithSpans is told of each span that has ended, before the call that ends it returns. It has a
// goroutine of its own, but the call waits for it: hand the span on, and do not close the store.
func WithSpans(tell func(Span)) StoreOption {
	return func(c *storeConfig) { c.tellSpan = tell }
}

// TraceOption is an option of locks and of transactions.
type TraceOption struct{ traceParent string }

func (o TraceOption) setLock(c *lockConfig) { c.traceParent = o.traceParent }
func (o TraceOption) setTx(c *txConfig)     { c.traceParent = o.traceParent }

// WithTraceParent is the caller's span, the parent of those of the lock or the transaction. What is
// not valid is ignored.
func WithTraceParent(traceParent string) TraceOption { return TraceOption{traceParent} }

// TraceParent is the span of the hold, for what is done under the lock; "": it is not traced.
func (l *Lock) TraceParent() string { return l.traceParent }

// TraceParent is the span of the transaction; "": it is not traced.
func (tx *Tx) TraceParent() string { return tx.traceParent }

//export holdfastSpan
func holdfastSpan(id C.uintptr_t, span *C.hf_span) {
	tell := kept[func(Span)](id)
	if tell == nil {
		return
	}
	told := Span{
		Kind:        SpanKind(span.kind),
		Status:      Status(span.status),
		Label:       C.GoStringN(span.label, C.int(span.label_size)),
		Key:         int64(span.key),
		Shared:      span.mode == C.HF_SHARED,
		Slot:        int(span.slot),
		Token:       int64(span.token),
		Start:       time.Unix(0, int64(span.start_ns)),
		End:         time.Unix(0, int64(span.end_ns)),
		TraceParent: C.GoString(span.traceparent),
		Parent:      C.GoString(span.parent),
		Link:        C.GoString(span.link),
	}
	done := make(chan struct{})
	go func() { // nothing may unwind C's frames
		defer close(done)
		tell(told)
	}()
	<-done
}
