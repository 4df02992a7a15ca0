"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { inspect } = require("node:util");
const { holdfast, isLocal, isPooled, onSessions, open, unique, lose, hold, tries, code, waiting } = require("./harness");

test("a pooler in transaction mode is refused for session locks", { skip: !isPooled }, async () => {
  const store = await open();
  await assert.rejects(store.lock(unique("job"), { wait: 0 }), code("HF_CONFIG"));
});

test("a lock excludes the command, and is free for it after the release", onSessions, async () => {
  const store = await open();
  const label = unique("job");
  const lock = await store.lock(label, { wait: 0 });
  assert.equal(lock.state, "held");
  assert.equal(lock.key, holdfast.key(label));
  assert.equal(await tries(label), 75);
  await lock.release();
  assert.equal(lock.state, "released");
  assert.equal(await tries(label), 0);
});

test("who is refused is told who holds", onSessions, async () => {
  const store = await open();
  const label = unique("job");
  const holder = await hold(label);
  await assert.rejects(store.lock(label, { wait: 0 }), (failure) => {
    assert.ok(code("HF_NOT_ACQUIRED")(failure));
    assert.equal(failure.status, 7);
    assert.equal(failure.name, "HoldfastError");
    assert.match(failure.message, /held by/);
    assert.notEqual(failure.hint, "");
    return true;
  });
  const { lock } = await waiting(store, label, { wait: 20_000 });
  await holder.end();
  await (await lock).release();
});

test("labels have the keys of the vectors", () => {
  assert.equal(holdfast.key("a"), -3848465438864589366n);
  assert.equal(holdfast.key(Buffer.from("a")), holdfast.key("a"));
  assert.equal(holdfast.key(42n), 42n);
  assert.equal(holdfast.key({ label: "-7", as: "fixed" }), -7n);
  assert.deepEqual(holdfast.key({ pair: [1, -2] }), [1, -2]);
  assert.equal(typeof holdfast.key({ label: "a", as: "hashtext" }), "bigint");
  assert.equal(holdfast.key({ label: "a", as: "distributedlock-ascii" }).length, 2);
});

test("a lease excludes as a lock does, and goes through a pooler", async (context) => {
  const [store, other, name] = [await open(), await open(), unique("lease")];
  let lease;
  try {
    lease = await store.lock(name, { lease: 5000 });
  } catch (failure) {
    if (failure.code !== "HF_NO_SCHEMA") throw failure;
    context.skip("leases need the schema");
    return;
  }
  assert.ok(lease.token > 0n);
  await assert.rejects(other.lock(name, { lease: 5000, wait: 0 }), code("HF_NOT_ACQUIRED"));
  await lease.release();
  await (await other.lock(name, { lease: 5000, wait: 0 })).release();
  await assert.rejects(store.lock(name, { lease: 0 }), code("HF_INVALID"));
});

test("sets, sharers and slots", onSessions, async () => {
  const store = await open();
  const [a, b, pool] = [unique("a"), unique("b"), unique("pool")];
  const set = await store.lock([a, b]);
  await assert.rejects(store.lock(b, { wait: 0 }), code("HF_NOT_ACQUIRED"));
  await set.release();
  const readers = await Promise.all([1, 2].map(() => store.lock(a, { shared: true, wait: 0 })));
  await assert.rejects(store.lock(a, { wait: 0 }), code("HF_NOT_ACQUIRED"));
  const workers = await Promise.all([1, 2].map(() => store.lock(pool, { slots: 2, wait: 0 })));
  assert.deepEqual(workers.map((lock) => lock.slot).sort(), [1, 2]);
  await assert.rejects(store.lock(pool, { slots: 2, wait: 0 }), code("HF_NOT_ACQUIRED"));
  await Promise.all([...readers, ...workers].map((lock) => lock.release()));
});

test("an owner enters again and keeps the order; others do not", onSessions, async () => {
  const store = await open();
  const [small, great] = [unique("x"), unique("y")].sort((a, b) => (holdfast.key(a) < holdfast.key(b) ? -1 : 1));
  const first = await store.lock(great, { owner: 7n });
  const again = await store.lock(great, { owner: 7, reentrant: true, wait: 0 });
  await assert.rejects(store.lock(great, { reentrant: true, wait: 0 }), code("HF_NOT_ACQUIRED"));
  await assert.rejects(store.lock(small, { owner: 7n, wait: 1000 }), code("HF_ORDER"));
  await (await store.lock(small, { wait: 1000 })).release();
  await again.release();
  await first.release();
});

test("tokens grow strictly", onSessions, async (t) => {
  const store = await open();
  if (!store.hasRecords) {
    await assert.rejects(store.lock(unique("job"), { needToken: true }), code("HF_NO_SCHEMA"));
    const lock = await store.lock(unique("job"));
    assert.equal(lock.token, null);
    await lock.release();
    return t.skip("no schema, no tokens");
  }
  const label = unique("job");
  let last = 0n;
  for (let i = 0; i < 50; i++) {
    const lock = await store.lock(label, { needToken: true });
    assert.ok(lock.token > last);
    last = lock.token;
    await lock.release();
  }
});

test("a loss is told by event, promise and signal, and by the release", onSessions, async () => {
  const folder = isLocal ? `local:${fs.mkdtempSync(path.join(os.tmpdir(), "hf-node-"))}` : undefined;
  const store = await open({ pingInterval: 200 }, folder);
  const lock = await store.lock(unique("job"), { private: true });
  const event = new Promise((resolve) => lock.once("lost", resolve));
  await lose(store, lock);
  const why = await event;
  assert.ok(code("HF_LOST")(why));
  assert.equal(await lock.lost, why);
  assert.equal(lock.signal.aborted, true);
  assert.equal(lock.signal.reason, why);
  assert.equal(lock.state, "lost");
  await assert.rejects(lock.release(), code("HF_LOST"));
  await assert.rejects(lock.release(), code("HF_INVALID"));
  await store.close();
  if (folder) fs.rmSync(folder.slice("local:".length), { recursive: true });
});

test("withLock releases on every path and tells a loss", onSessions, async () => {
  const store = await open();
  const label = unique("job");
  assert.equal(await store.withLock(label, (lock) => lock.state), "held");
  await assert.rejects(store.withLock(label, { wait: 0 }, async () => { throw new RangeError("mine"); }), RangeError);
  await store.withLock(label, { wait: 0 }, (lock) => lock.release());
  assert.equal(await tries(label), 0);
});

test("an aborted wait fails as fetch does, and holds nothing", onSessions, async () => {
  const store = await open();
  const label = unique("job");
  const holder = await hold(label);
  const controller = new AbortController();
  const { lock } = await waiting(store, label, { signal: controller.signal });
  controller.abort();
  await assert.rejects(lock, { name: "AbortError" });
  await assert.rejects(store.lock(label, { signal: AbortSignal.abort(new TypeError("why")) }), TypeError);
  await assert.rejects(store.lock(label, { signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  await holder.end();
  assert.equal(await tries(label), 0);
});

test("nothing is held after many aborted waits", { ...onSessions, timeout: 60_000 }, async () => {
  const store = await open();
  const label = unique("job");
  for (let round = 0; round < 20; round++) {
    const held = await store.lock(label, { wait: 20_000 });
    const controllers = Array.from({ length: 50 }, () => new AbortController());
    const waits = controllers.map(({ signal }) => store.lock(label, { signal }));
    controllers.forEach((controller, number) => {
      // At any moment: at once, in a moment, and while the lock is handed over.
      if (number < 10) controller.abort();
      else setTimeout(() => controller.abort(), number % 10);
    });
    setTimeout(() => held.release(), round % 10);
    for (const result of await Promise.allSettled(waits)) {
      if (result.status === "fulfilled") await result.value.release();
      else assert.equal(result.reason.name, "AbortError");
    }
  }
  assert.equal(await tries(label), 0);
  assert.deepEqual((await store.locks()).filter((view) => view.key === holdfast.key(label)), []);
});

test("a hundred tasks have one lock one after the other", { ...onSessions, timeout: 60_000 }, async () => {
  const stores = [await open(), await open()];
  const label = unique("job");
  let inside = 0, done = 0;
  await Promise.all(Array.from({ length: 100 }, (_, number) =>
    stores[number % 2].withLock(label, async () => {
      assert.equal(++inside, 1);
      await new Promise(setImmediate);
      inside--;
      done++;
    })));
  assert.equal(done, 100);
});

test("closing ends waits, releases locks and refuses what comes after", onSessions, async () => {
  const store = await open();
  const [mine, theirs] = [unique("mine"), unique("theirs")];
  const holder = await hold(theirs);
  const lock = await store.lock(mine);
  const { lock: wait } = await waiting(store, theirs);
  await Promise.all([store.close(), assert.rejects(wait, holdfast.HoldfastError)]);
  assert.equal(await tries(mine), 0);
  assert.equal(lock.state, "released");
  await assert.rejects(lock.release(), code("HF_INVALID"));
  await assert.rejects(lock.note("word"), code("HF_INVALID"));
  await assert.rejects(store.lock(mine), code("HF_INVALID"));
  await assert.rejects(store.locks(), code("HF_INVALID"));
  await assert.rejects(store.tables.list(), code("HF_INVALID"));
  await store.close();
  await holder.end();
});

test("the garbage collector leaves a held lock alone", onSessions, async () => {
  const label = unique("job");
  const store = await open();
  await (async () => { await store.lock(label); })();
  require("node:v8").setFlagsFromString("--expose-gc");
  const collect = require("node:vm").runInNewContext("gc");
  for (let i = 0; i < 5; i++) {
    collect();
    await new Promise(setImmediate);
  }
  assert.equal(await tries(label), 75);
  await store.close();
});

test("bad input is an error of its own type", async () => {
  const store = await open();
  const bad = [
    [undefined], [null], [42], [[]], [{}], ["\ud800"], [{ label: "a", as: "md6" }], [{ key: 2n ** 63n }], [{ pair: [1] }],
    [{ pair: [1, 2 ** 31] }], [{ label: "a", lable: "b" }], ["x".repeat(65537)], ["a", { wait: -1 }], ["a", { wait: "1" }],
    ["a", { Wait: 0 }], ["a", 5], ["a", { signal: {} }], ["a", { slots: 0 }], ["a", { owner: 0 }], ["a", { owner: 2n ** 62n }],
    ["a", { shared: 1 }], ["a", { onWait: 1 }], ["a", { slots: 2, shared: true }],
  ];
  for (const [target, options] of bad) {
    const given = typeof options === "number" ? options : { wait: 0, ...options };
    await assert.rejects(store.lock(target, given), code("HF_INVALID"), inspect([target, options]));
  }
  await assert.rejects(holdfast.open(7), code("HF_INVALID"));
  await assert.rejects(holdfast.open("a\0b"), code("HF_INVALID"));
  await assert.rejects(holdfast.open("local:/dev/null/x"), holdfast.HoldfastError);
  await assert.rejects(holdfast.open("local:/tmp", { pingInterval: 1.5 }), code("HF_INVALID"));
  await assert.rejects(store.transact("a", "not a function"), code("HF_INVALID"));
  assert.throws(() => new holdfast.Lock().release, TypeError);
});
