package holdfast_test

import (
	"strings"
	"sync"
	"testing"

	"holdfast"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// told collects spans, which may come from several goroutines.
type told struct {
	mu    sync.Mutex
	spans []holdfast.Span
}

func (t *told) add(span holdfast.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, span)
}

func (t *told) only(test *testing.T, kind holdfast.SpanKind) holdfast.Span {
	test.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []holdfast.Span
	for _, span := range t.spans {
		if span.Kind == kind {
			found = append(found, span)
		}
	}
	if len(found) != 1 {
		test.Fatalf("%d of %d spans are of this kind", len(found), len(t.spans))
	}
	return found[0]
}

func TestSpansOfWaitAndHold(t *testing.T) {
	var spans, others told
	store, other := open(t, holdfast.WithSpans(spans.add)), open(t, holdfast.WithSpans(others.add))
	held := acquire(t, store, label(t, "job"), holdfast.WithTraceParent(parent))
	if !strings.HasPrefix(held.TraceParent(), parent[:36]) || held.TraceParent() == parent {
		t.Fatal(held.TraceParent())
	}
	waiting := start(within(t), t, byLabel(store, label(t, "job")), holdfast.WithTraceParent(parent))
	must(t, held.Release())
	hold := spans.only(t, holdfast.SpanHold)
	if hold.TraceParent != held.TraceParent() || hold.Parent != parent || hold.Status != 0 || hold.Label != label(t, "job") {
		t.Fatalf("%+v", hold)
	}
	lock := waiting.result(t)
	wait := spans.only(t, holdfast.SpanWait)
	if wait.Link != hold.TraceParent || wait.Parent != parent || !wait.End.After(wait.Start) {
		t.Fatalf("%+v", wait)
	}
	expect(t, lockRefused(t, other, label(t, "job"), holdfast.NoWait()), holdfast.ErrNotAcquired)
	if refused := others.only(t, holdfast.SpanWait); refused.Status != holdfast.ErrNotAcquired || refused.Parent != "" {
		t.Fatalf("%+v", refused)
	}
	must(t, lock.Release())
}

func TestTraceParentThatIsNotValidIsIgnored(t *testing.T) {
	lock := acquire(t, open(t), label(t, "job"), holdfast.WithTraceParent("no span"))
	if lock.TraceParent() != "" {
		t.Fatal(lock.TraceParent())
	}
	must(t, lock.Release())
}

func TestTxSpan(t *testing.T) {
	var spans told
	store := open(t, holdfast.WithSpans(spans.add))
	var own string
	must(t, store.Transact(within(t), []holdfast.Target{holdfast.Label(label(t, "tx"))}, func(tx *holdfast.Tx) error {
		own = tx.TraceParent()
		return nil
	}, holdfast.WithTraceParent(parent)))
	span := spans.only(t, holdfast.SpanTransaction)
	if span.TraceParent != own || span.Parent != parent || span.Label != label(t, "tx") {
		t.Fatalf("%+v", span)
	}
}
