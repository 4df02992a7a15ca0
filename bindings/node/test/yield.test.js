"use strict";

// Yielding: the holder is told who asks, and the lock goes to that one when it is released.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { inspect } = require("node:util");
const { isPooled, onSessions, open, unique, code, gate, waiting } = require("./harness");

const WAYS = { session: {}, private: { private: true }, lease: { lease: 5000 } };
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
const isPending = async (promise) => (await Promise.race([promise, pause(0).then(() => isPending)])) === isPending;

/** onYield, and the promise of what it is told first. */
function asked() {
  const { passed, open: tell } = gate();
  const heard = [];
  return { heard, first: passed, onYield: (...told) => { heard.push(told); tell(told); } };
}

for (const [how, way] of Object.entries(WAYS)) {
  const skip = isPooled && how !== "lease" && onSessions.skip;
  test(`the holder is told who asks, and the lock goes there: ${how}`, { skip, timeout: 60_000 }, async (context) => {
    const [store, other, successor] = [await open(), await open(), await open({ application: "successor" })];
    const label = unique("job");
    const { heard, first, onYield } = asked();
    let lock;
    try {
      lock = await store.lock(label, { ...way, onYield });
    } catch (failure) {
      if (failure.code !== "HF_NO_SCHEMA") throw failure;
      context.skip("leases need the schema");
      return;
    }
    const before = (await waiting(other, label, way)).lock;
    const asks = (await waiting(successor, label, { ...way, ask: true })).lock;
    const [told, who] = await first;
    assert.equal(told, lock);
    assert.ok(who.includes(label), who);
    if (store.hasRecords) assert.match(who, /successor/);
    assert.ok(await isPending(asks));
    assert.equal(lock.state, "held");
    await lock.release();
    const second = await asks;
    await pause(500);
    assert.ok(await isPending(before));
    assert.equal(heard.length, 1);
    await second.release();
    await (await before).release();
  });
}

test("who is asked may release at once, or go on", { ...onSessions, timeout: 60_000 }, async () => {
  const [store, other] = [await open(), await open()];
  const label = unique("job");
  await store.lock(label, { onYield: (lock) => lock.release() });
  await (await other.lock(label, { ask: true })).release();
  const { heard, first, onYield } = asked();
  const lock = await store.lock(label, { onYield });
  const controller = new AbortController();
  const { lock: asks } = await waiting(other, label, { ask: true, signal: controller.signal });
  await first;
  controller.abort();
  await assert.rejects(asks, { name: "AbortError" });
  assert.equal(lock.state, "held");
  assert.equal(heard.length, 1);
  await lock.release();
  await (await other.lock(label)).release();
});

test("the lock of a table is asked for", { ...onSessions, timeout: 60_000 }, async (context) => {
  const [store, other] = [await open(), await open()];
  if (!store.hasRecords) return context.skip("tables need the schema");
  const table = `shop.${unique("asked").replaceAll("-", "_")}`;
  await store.tables.lock(table, { onYield: (lock) => lock.release() });
  await (await other.tables.lock(table, { ask: true })).release();
});

test("what is told before the loop has taken up the lock is told with it", { ...onSessions, timeout: 60_000 }, async () => {
  const [store, other] = [await open(), await open()];
  const label = unique("job");
  const { heard, first, onYield } = asked();
  const acquires = store.lock(label, { onYield });
  const standStill = (time) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time);
  // Both calls go on in the library while the loop stands still, one after the other, and the ask comes meanwhile.
  const asks = new Promise((resolve, reject) => {
    setImmediate(() => {
      standStill(1000);
      other.lock(label, { ask: true }).then(resolve, reject);
      standStill(4000);
    });
  });
  const lock = await acquires;
  const [told] = await first;
  assert.equal(told, lock);
  await lock.release();
  await (await asks).release();
  assert.equal(heard.length, 1);
});

test("what cannot be asked for is refused", async () => {
  const store = await open();
  const onYield = () => {};
  const bad = [
    [["a", "b"], { ask: true }], ["a", { ask: true, slots: 2 }], ["a", { ask: true, wait: 0 }], ["a", { ask: 1 }],
    [["a", "b"], { onYield }], ["a", { onYield, slots: 2 }], ["a", { onYield: 1 }],
  ];
  for (const [target, options] of bad) {
    await assert.rejects(store.lock(target, { wait: 1000, ...options }), code("HF_INVALID"), inspect([target, options]));
  }
});
