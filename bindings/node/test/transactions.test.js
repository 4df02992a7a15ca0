"use strict";

const assert = require("node:assert/strict");
const { test, before } = require("node:test");
const { holdfast, isLocal, onSessions, onServers, open, unique, admin, code, gate } = require("./harness");

const table = unique("node").replaceAll("-", "_");
before(async () => {
  const store = await open();
  await store.transact(null, async (tx) => {
    await tx.query(`CREATE TABLE ${table} (id int PRIMARY KEY, n int NOT NULL)`);
    await tx.query(`INSERT INTO ${table} VALUES (1, 0)`);
  });
});

async function count(store) {
  return store.transact(null, async (tx) => Number((await tx.query(`SELECT n FROM ${table} WHERE id = 1`)).rows[0].n),
    { readOnly: true });
}

test("it gives what the work gives, and rows with their columns", async () => {
  const store = await open();
  const result = await store.transact("Node:rows", (tx) =>
    tx.query("SELECT 1 AS one, NULL AS none, 'é' AS \"__proto__\" UNION ALL SELECT 2, NULL, ''"));
  assert.deepEqual(result.columns, ["one", "none", "__proto__"]);
  assert.deepEqual(result.rows.map((row) => row.one), ["1", "2"]);
  assert.equal(result.rows[0].none, null);
  assert.deepEqual(result.rows.map((row) => Object.entries(row)[2][1]), ["é", ""]);
});

test("values go and come back as they are", async () => {
  const store = await open();
  const text = isLocal ? "" : "::text";
  const given = ["it's", 1.5, 2n ** 62n, null, undefined, new Date(0)];
  const [{ rows: [row] }, { rows: [bytes] }] = await store.transact([], (tx) => Promise.all([
    tx.query(`SELECT ${given.map((_, i) => `$${i + 1}${text} AS v${i}`).join()}`, given),
    tx.query(`SELECT $1${isLocal ? "" : "::bytea"} AS v`, [Buffer.from([0, 255, 39])], { binary: true }),
  ]));
  assert.deepEqual(Object.values(row), ["it's", "1.5", String(2n ** 62n), null, null, "1970-01-01T00:00:00.000Z"]);
  assert.deepEqual(bytes.v, Buffer.from([0, 255, 39]));
  for (const value of [[], {}, Symbol("s"), "\0", new Date(NaN), () => 0]) {
    await assert.rejects(store.transact(null, (tx) => tx.query("SELECT $1", [value])), code("HF_INVALID"));
  }
});

test("an error of the work rolls back and comes out as it is", async () => {
  const store = await open();
  const before = await count(store);
  const mine = new RangeError("mine");
  await assert.rejects(store.transact("Node:mine", async (tx) => {
    await tx.query(`UPDATE ${table} SET n = n + 1`);
    throw mine;
  }), (failure) => failure === mine);
  assert.equal(await count(store), before);
});

test("a failed statement says where and why", async () => {
  const store = await open();
  await assert.rejects(store.transact(null, (tx) => tx.query("SELECT * FROM no_such_table")), (failure) => {
    assert.ok(failure instanceof holdfast.HoldfastError);
    if (!isLocal) {
      assert.equal(failure.code, "HF_DATABASE");
      assert.equal(failure.sqlstate, "42P01");
      assert.equal(failure.position, 15);
    }
    return true;
  });
  await assert.rejects(store.transact(null, (tx) => tx.query("COMMIT")), code("HF_INVALID"));
});

test("what was queued is committed, and labels are added before the first statement only", async () => {
  const store = await open();
  const before = await count(store);
  await store.transact("Node:queue", async (tx) => {
    await tx.serialize(unique("zz"));
    await tx.queue(`UPDATE ${table} SET n = n + $1`, [2]);
  }, { owner: undefined });
  assert.equal(await count(store), before + 2);
  await assert.rejects(store.transact(null, async (tx) => {
    await tx.query("SELECT 1");
    await tx.serialize(unique("late"));
  }), holdfast.HoldfastError);
});

test("an attempt that has ended takes no more statements", async () => {
  const store = await open();
  let kept;
  await store.transact(null, (tx) => { kept = tx; });
  await assert.rejects(kept.query("SELECT 1"), code("HF_INVALID"));
});

test("a serialisation failure runs the work again, whatever it makes of the error", onServers, async () => {
  const store = await open();
  const attempts = [];
  const result = await store.transact("Node:again", async (tx) => {
    attempts.push(tx.attempt);
    if (tx.attempt < 3) {
      await tx.query("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$").catch(() => { throw new Error("mine"); });
    }
    return "done";
  });
  assert.equal(result, "done");
  assert.deepEqual(attempts, [1, 2, 3]);
  await assert.rejects(store.transact(null, (tx) =>
    tx.query("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$"), { maxAttempts: 2, backoffMax: 1 }), code("HF_EXHAUSTED"));
});

test("labels exclude each other over stores, and stats tell", { timeout: 60_000 }, async () => {
  const stores = [await open(), await open()];
  const before = await count(stores[0]);
  const stats = [];
  await Promise.all(Array.from({ length: 100 }, (_, number) =>
    stores[number % 2].transact("Node:count", async (tx) => {
      const { rows: [row] } = await tx.query(`SELECT n FROM ${table} WHERE id = 1`);
      await tx.queue(`UPDATE ${table} SET n = $1 WHERE id = 1`, [Number(row.n) + 1]);
    }, { onStats: (one) => stats.push(one) })));
  assert.equal(await count(stores[0]), before + 100);
  assert.equal(stats.length, 100);
  assert.deepEqual(new Set(stats.map(({ label, outcome, key }) => `${label} ${outcome} ${key}`)),
    new Set([`Node:count HF_OK ${holdfast.key("Node:count")}`]));
});

test("each is committed once while sessions are terminated", { ...onServers, timeout: 60_000 }, async () => {
  const store = await open();
  const before = await count(store);
  const done = { ok: 0, doubt: 0 };
  let cuts = 0, workers = 8;
  const killer = (async () => {
    while (cuts < 20 && workers > 0) {
      cuts += (await admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
        AND usename = 'app' AND state <> 'idle' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`)).length;
    }
  })();
  async function work(label) {
    for (let i = 0; i < 5 || cuts < 5; i++) {
      await store.transact(label, async (tx) => {
        await tx.query(`SELECT n FROM ${table} WHERE id = 1`);
        await tx.query(`UPDATE ${table} SET n = n + 1 WHERE id = 1`);
      }, { isolation: "read committed", maxAttempts: 1000, backoffMax: 20 }).then(() => done.ok++, (failure) => {
        if (failure.code !== "HF_IN_DOUBT") throw failure;
        done.doubt++;
      });
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) =>
    work(`Node:cut:${worker % 2}`).finally(() => { workers--; })));
  await killer;
  const added = await count(store) - before;
  assert.ok(added >= done.ok && added <= done.ok + done.doubt, `${added} of ${JSON.stringify(done)}`);
});

test("a signal ends a statement, and a wait for a label", async () => {
  const store = await open();
  const label = unique("Node:abort");
  const [entered, leave] = [gate(), gate()];
  const holder = store.transact(label, async (tx) => {
    await tx.query("SELECT 1");
    entered.open();
    await leave.passed;
  });
  await entered.passed;
  const controller = new AbortController();
  const waits = store.transact(label, (tx) => tx.query("SELECT 1"), { signal: controller.signal });
  setTimeout(() => controller.abort(), 50);
  await assert.rejects(waits, { name: "AbortError" });
  leave.open();
  await holder;
  if (isLocal) return;
  const before = await count(store);
  const other = new AbortController();
  const sleeps = store.transact(label, async (tx) => {
    await tx.query(`UPDATE ${table} SET n = n + 1`);
    setTimeout(() => other.abort(), 50);
    await tx.query("SELECT pg_sleep(60)");
  }, { signal: other.signal });
  await assert.rejects(sleeps, { name: "AbortError" });
  assert.equal(await count(store), before);
});

test("a transaction on the session of a private lock", onSessions, async () => {
  const store = await open();
  const before = await count(store);
  const lock = await store.lock(unique("job"), { private: true });
  await lock.transact(async (tx) => {
    await tx.query(`UPDATE ${table} SET n = n + 1`);
    await assert.rejects(lock.release(), code("HF_ORDER"));
  });
  await lock.release();
  assert.equal(await count(store), before + 1);
  const shared = await store.lock(unique("job"));
  await assert.rejects(shared.transact(() => {}), code("HF_INVALID"));
  await shared.release();
});

test("closing the store rolls back a transaction in the middle, also from inside of it", async () => {
  const store = await open();
  const watcher = await open();
  const before = await count(watcher);
  await assert.rejects(store.transact("Node:close", async (tx) => {
    await tx.query(`UPDATE ${table} SET n = n + 1`);
    await store.close();
    await tx.query("SELECT 1");
  }), code("HF_INVALID"));
  assert.equal(await count(watcher), before);
});
