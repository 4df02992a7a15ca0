"use strict";

// Tables, cursors, lists and the schedule: what needs the schema.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { holdfast, isPooled, onSessions, open, unique, code, tries, until } = require("./harness");

let store;
/** On a store with records; elsewhere the call must say that there are none. */
function recorded(name, work) {
  test(name, onSessions, async (t) => {
    store ??= await open();
    if (store.hasRecords) return work(t);
    await assert.rejects(store.tables.register("shop.events"), code("HF_NO_SCHEMA"));
    return t.skip("there is no schema");
  });
}

recorded("a table has one id, which is the key of its lock", async () => {
  const name = `shop.${unique("events").replaceAll("-", "_")}`;
  assert.equal(await store.tables.find(name), null);
  const ids = await Promise.all(Array.from({ length: 10 }, () => store.tables.register(name)));
  assert.equal(ids.filter(({ created }) => created).length, 1);
  assert.equal(new Set(ids.map(({ id }) => id)).size, 1);
  const [{ id }] = ids;
  assert.equal(await store.tables.find(name), id);
  const lock = await store.tables.lock(name, { wait: 0 });
  assert.equal(lock.key, id);
  await assert.rejects(store.tables.lock(name, { wait: 0 }), code("HF_NOT_ACQUIRED"));
  await lock.release();
  assert.equal(await store.tables.ref(name, "a"), id);
  await store.tables.ref(name, "b");
  assert.deepEqual(await store.tables.refs(name), ["a", "b"]);
  const [view] = await store.tables.list({ name });
  assert.deepEqual([view.id, view.references, view.droppedMs], [id, 2, 0]);
  await assert.rejects(store.tables.drop(name, { wait: 0 }), code("HF_INVALID"));
  assert.equal(await store.tables.unref(name, "a"), false);
  assert.equal(await store.tables.unref(name, "b", { wait: 1000 }), true);
  assert.equal(await store.tables.find(name), null);
  await assert.rejects(store.tables.find("a.b.c.d"), code("HF_INVALID"));
});

recorded("locks are listed with their label and token, and are in the history", async () => {
  const label = unique("listed");
  const lock = await store.lock(label);
  const view = await until(async () => (await store.locks()).find(({ token }) => token === lock.token));
  assert.equal(view.label, label);
  assert.equal(view.key, lock.key);
  assert.equal(view.pid, process.pid);
  assert.equal(view.waiting, false);
  await lock.note("exit", "ok");
  await lock.release();
  await until(async () => (await store.history(60_000)).some(({ key }) => key === lock.key));
});

recorded("a run is due once in a period", async () => {
  const label = unique("cleanup");
  await store.withLock(label, async () => {
    assert.equal((await store.claim(label, 3_600_000)).due, true);
    const { due, waitMs } = await store.claim(label, 3_600_000);
    assert.equal(due, false);
    assert.ok(waitMs > 3_000_000 && waitMs <= 3_600_000, `${waitMs}`);
  });
  assert.equal(await tries(label), 0);
});

test("cursors move as they are told, and gaps are found", { skip: isPooled }, async () => {
  store ??= await open();
  const network = await store.network(unique("net"));
  assert.equal(await network.cursor("at"), null);
  await assert.rejects(network.advanceCursor("at", 1), code("HF_CURSOR"));
  await network.setCursor("at", 2n ** 60n);
  await network.advanceCursor("at", 2n ** 60n + 1n);
  await assert.rejects(network.advanceCursor("at", 5), code("HF_CURSOR"));
  await network.swapCursor("at", 2n ** 60n + 1n, 7);
  await network.lowerCursor("at", 3);
  await network.lowerCursor("at", 9);
  assert.equal(await network.cursor("at"), 3n);
  assert.deepEqual(await network.cursors(), new Map([["at", 3n]]));
  await assert.rejects(network.gaps(1, 10), holdfast.HoldfastError).catch(async () => {
    assert.deepEqual(await network.gaps(1, 10), [{ from: 1n, to: 10n }]);
  });
  await network.close();
  await assert.rejects(network.cursor("at"), code("HF_INVALID"));
  await assert.rejects(store.network("No Such!"), code("HF_INVALID"));
});

test("the store is examined, and its schema installed again", async () => {
  store ??= await open();
  const topics = (await store.examine()).map(({ topic }) => topic);
  assert.ok(topics.length > 2, topics.join());
  if (store.hasRecords) {
    const { from, to } = await store.init();
    assert.equal(from, to);
  }
});

test("keys follow the registry of the store", async (t) => {
  const fs = require("node:fs");
  const path = require("node:path");
  const registry = path.join(__dirname, `${unique("locks")}.yaml`);
  fs.writeFileSync(registry, `version: 1
locks:
  - name: transfer
    key: { pattern: "Transfer:{account}", as: hashtext }
    purpose: money moves once
`);
  t.after(() => fs.unlinkSync(registry));
  const opened = await open({ registry }).catch((failure) => { throw new Error(`${failure.message}; ${failure.hint}`); });
  assert.equal(await opened.key("Transfer:a"), holdfast.key({ label: "Transfer:a", as: "hashtext" }));
  assert.equal(await opened.key("Other:a"), holdfast.key("Other:a"));
  assert.equal(await opened.label("transfer", { account: "a" }), "Transfer:a");
  for (const [name, values] of [["transfer", {}], ["transfer", { account: "a", other: 1 }], ["nothing", {}], ["transfer", null]]) {
    await assert.rejects(opened.label(name, values), code("HF_INVALID"));
  }
  await assert.rejects(open({ registry: "/nowhere/locks.yaml" }), holdfast.HoldfastError);
});
