"use strict";

// Spans: told when they have ended, with the parent that was given and the hold that was waited for.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { onSessions, open, unique, waiting } = require("./harness");

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const of = (spans, kind) => spans.filter((span) => span.kind === kind);

test("a wait links to the hold that it waits for", { ...onSessions, timeout: 60_000 }, async () => {
  const spans = [];
  const store = await open({ onSpan: (span) => spans.push(span) });
  const label = unique("job");
  const lock = await store.lock(label, { traceparent: parent });
  assert.equal(lock.traceparent.slice(0, 36), parent.slice(0, 36));
  const second = (await waiting(store, label, { traceparent: parent })).lock;
  await lock.release();
  await (await second).release();
  await store.close();
  const [wait] = of(spans, "wait");
  const [first, last] = of(spans, "hold");
  assert.deepEqual([wait.link, wait.parent, wait.status, wait.label], [lock.traceparent, parent, "HF_OK", label]);
  assert.ok(wait.startNs < wait.endNs && wait.endNs === last.startNs);
  assert.deepEqual([first.traceparent, first.parent, first.link], [lock.traceparent, parent, ""]);
});

test("what is not valid is ignored", onSessions, async () => {
  const store = await open();
  const lock = await store.lock(unique("job"), { traceparent: "no span" });
  assert.equal(lock.traceparent, "");
  await lock.release();
});

test("a transaction is a span", async () => {
  const spans = [];
  const store = await open({ onSpan: (span) => spans.push(span) });
  const label = unique("Tx");
  const own = await store.transact(label, (tx) => tx.traceparent, { traceparent: parent });
  await store.close();
  const [span] = of(spans, "transaction");
  assert.deepEqual([span.traceparent, span.parent, span.label], [own, parent, label]);
});
