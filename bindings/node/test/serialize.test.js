"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { Client, Pool } = require("pg");
const { holdfast, url, onServers, open, unique, code, admin, gate, until } = require("./harness");

const { serialize, key } = holdfast;

async function connected(t) {
  const client = new Client({ connectionString: url });
  await client.connect();
  t.after(() => client.end());
  return client;
}

test("pg: the label is locked until the transaction ends", onServers, async (t) => {
  const [first, second] = [await connected(t), await connected(t)];
  const label = unique("Booking");
  await first.query("BEGIN");
  assert.equal(await serialize(first, label), key(label));
  await second.query("BEGIN");
  const order = [];
  const waits = serialize(second, label).then(() => order.push("second"));
  await until(async () => (await admin("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    + " AND (classid::int8 << 32 | objid::int8) = $1", [key(label)])).length > 0);
  order.push("first");
  await first.query("COMMIT");
  await waits;
  assert.deepEqual(order, ["first", "second"]);
  await second.query("COMMIT");
});

test("pg: where the lock would protect nothing it is refused", onServers, async (t) => {
  const client = await connected(t);
  const label = unique("Booking");
  await assert.rejects(serialize(client, label), code("HF_NO_TRANSACTION"));
  for (const level of ["REPEATABLE READ", "SERIALIZABLE"]) {
    await client.query(`BEGIN ISOLATION LEVEL ${level}`);
    await assert.rejects(serialize(client, label), (failure) => {
      assert.match(failure.hint, /store\.transact/);
      return code("HF_CONFIG")(failure);
    });
    await client.query("ROLLBACK");
  }
  assert.deepEqual(await admin("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND (classid::int8 << 32 | objid::int8) = $1",
    [key(label)]), []);
});

test("a pool has no transaction", onServers, async (t) => {
  const pool = new Pool({ connectionString: url, max: 2 });
  t.after(() => pool.end());
  await assert.rejects(serialize(pool, unique("Booking")), code("HF_NO_TRANSACTION"));
});

test("two int4 and numbers are locked as such, and excluded by a transaction of ours", onServers, async (t) => {
  const client = await connected(t);
  const store = await open();
  await client.query("BEGIN");
  assert.deepEqual(await serialize(client, { pair: [-1, process.pid] }), [-1, process.pid]);
  const label = unique("Booking");
  assert.equal(await serialize(client, label, { store }), key(label));
  const held = await admin("SELECT classid::int8, objid::int8, objsubid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = $1",
    [process.pid]);
  assert.deepEqual(held, [{ classid: String(2 ** 32 - 1), objid: String(process.pid), objsubid: 2 }]);
  const entered = gate();
  const ours = store.transact(label, async (tx) => {
    entered.open();
    return (await tx.query("SELECT 'after' AS when")).rows[0].when;
  });
  await entered.passed;
  await client.query("COMMIT");
  assert.equal(await ours, "after");
});

test("what is no client is refused", async () => {
  for (const client of [null, undefined, {}, 7]) await assert.rejects(serialize(client, "a"), code("HF_INVALID"));
  await assert.rejects(serialize({ query() {} }, 7), code("HF_INVALID"));
});
