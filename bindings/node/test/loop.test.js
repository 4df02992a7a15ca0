"use strict";

// The event loop is never held up, and the end of a process or a worker is clean, whatever is going on.

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const { once } = require("node:events");
const { test } = require("node:test");
const { Worker } = require("node:worker_threads");
const { holdfast, url, onSessions, open, unique, node, tries, code, until } = require("./harness");

/** The longest time without a turn of the loop, in milliseconds, while work runs. */
async function longestStop(work) {
  let longest = 0, turns = 0, last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    turns++;
  }, 5);
  await work(() => turns);
  clearInterval(timer);
  return longest;
}

test("a timer ticks while a hundred waits and a silent server are outstanding", { ...onSessions, timeout: 60_000 }, async () => {
  const silent = net.createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const store = await open();
  const label = unique("job");
  const held = await store.lock(label);
  const controller = new AbortController();
  const { signal } = controller;
  let waits;
  const stop = await longestStop(async (turns) => {
    waits = Array.from({ length: 100 }, () => store.lock(label, { signal }));
    const connects = holdfast.open(`postgresql://x@127.0.0.1:${silent.address().port}/x`, { connectTimeout: 1500 });
    // Node's own threads are free for files, and ours for other locks.
    for (let i = 0; i < 50; i++) await fs.promises.readFile(__filename);
    await (await store.lock(unique("other"), { wait: 0 })).release();
    await assert.rejects(connects, code("HF_UNREACHABLE"));
    assert.ok(turns() > 50, `${turns()} turns`);
  });
  controller.abort();
  await Promise.allSettled(waits);
  await held.release();
  silent.close();
  // A call that blocked would have stopped the loop for the 1.5 s of the server's silence.
  assert.ok(stop < 1400, `the loop stood still for ${stop} ms`);
});

test("200 waits for 200 locks cost no thread each", { ...onSessions, timeout: 60_000 }, async () => {
  const count = () => fs.readdirSync("/proc/self/task").length;
  const [holder, store] = [await open(), await open()];
  const labels = Array.from({ length: 200 }, () => unique("job"));
  const held = [];
  for (const label of labels) held.push(await holder.lock(label));
  await (await store.lock(unique("other"))).release();
  const before = count();
  let told = 0;
  const waits = labels.map((label) => store.lock(label, { onWait: () => { told++; } }));
  await until(() => told === labels.length);
  // On a local store the kernel wakes a thread when a process dies: there each key has one.
  const more = count() - before;
  assert.ok(more <= (store.isLocal ? labels.length : 0) + 4, `${more} more threads`);
  for (const lock of held) await lock.release();
  for (const wait of waits) await (await wait).release();
});

const SCRIPT = `
  const holdfast = require("holdfast");
  (async () => {
    const [url, label, how] = process.argv.slice(1);
    const store = await holdfast.open(url);
    const lock = await store.lock(label);
    for (let i = 0; i < 20; i++) store.lock(label).catch(() => {});
    await new Promise((resolve) => store.lock(label, { onWait: resolve }).catch(() => {}));
    store.transact(label + "-tx", (tx) => tx.query("SELECT 1").then(() => new Promise(() => {}))).catch(() => {});
    for (let i = 0; i < 4; i++) store.locks().catch(() => {});
    if (how === "exit") process.exit(7);
    if (how === "throw") throw new Error("mine");
    if (how === "close") { await store.close(); process.exitCode = 7; }
  })();`;

for (const [how, expected] of [["exit", 7], ["throw", 1], ["close", 7]]) {
  test(`a process ends cleanly with waits outstanding: ${how}`, onSessions, async () => {
    const label = unique("job");
    const { code: status, signal, err } = await node(SCRIPT, url, label, how);
    assert.equal(signal, null, err);
    assert.equal(status, expected, err);
    await until(async () => await tries(label) === 0); // the server sees the end of a process a moment later
  });
}

test("a process without locks ends by itself, and one with a lock stays", onSessions, async () => {
  const label = unique("job");
  const script = (rest) => `require("holdfast").open(process.argv[1]).then(async (store) => { ${rest} })`;
  assert.equal((await node(script("const lock = await store.lock(process.argv[2]); await lock.release();"), url, label)).code, 0);
  const stays = await node(script("await store.lock(process.argv[2]); setTimeout(() => process.exit(5), 100).unref();"), url, label);
  assert.equal(stays.code, 5);
});

const WORKER = `
  const { workerData, parentPort } = require("node:worker_threads");
  const holdfast = require("holdfast");
  holdfast.open(workerData.url).then(async (store) => {
    const lock = await store.lock(workerData.label);
    store.lock(workerData.label, { onWait: () => parentPort.postMessage("waits") }).catch(() => {});
  });`;

test("a worker that is terminated releases its locks, time and again", { ...onSessions, timeout: 60_000 }, async () => {
  const label = unique("job");
  const script = path.join(__dirname, `${unique("worker")}.js`);
  fs.writeFileSync(script, WORKER);
  for (let i = 0; i < 5; i++) {
    const worker = new Worker(script, { workerData: { url, label } });
    assert.deepEqual(await once(worker, "message"), ["waits"]);
    await worker.terminate();
    await until(async () => await tries(label) === 0);
  }
});

test("a missing or unfit libholdfast is told with what to do", async () => {
  for (const [library, message] of [["/nowhere/libholdfast.so.0", /HOLDFAST_LIBRARY/], [findLibc(), /too old/]]) {
    const script = `try { require("holdfast"); } catch (failure) { console.log(failure.name, failure.code, failure.message); }`;
    const before = process.env.HOLDFAST_LIBRARY;
    process.env.HOLDFAST_LIBRARY = library;
    const { out } = await node(script).finally(() => { process.env.HOLDFAST_LIBRARY = before; });
    assert.match(out, /^HoldfastError HF_CONFIG/);
    assert.match(out, message);
  }
});

/** Any library that is not ours. */
function findLibc() {
  return execFileSync("sh", ["-c", "ldd $(command -v sh) | sed -n 's/.*=> \\(.*libc[.]so[^ ]*\\) .*/\\1/p'"], { encoding: "utf8" }).trim();
}

test("thousands of locks leave neither memory nor descriptors nor threads", { ...onSessions, timeout: 60_000 }, async () => {
  const { native } = require("holdfast/lib/native");
  require("node:v8").setFlagsFromString("--expose-gc");
  const collect = require("node:vm").runInNewContext("gc");
  const label = unique("job");
  const { signal } = new AbortController();
  async function use(store, times) {
    for (let i = 0; i < times; i++) {
      await store.withLock(label, { signal, onYield() {} }, () => {});
      if (i % 10 === 0) await store.transact("Node:leak", (tx) => tx.query("SELECT 1"));
      if (i % 100 === 0) await assert.rejects(store.lock([label, { key: 1n, label: "x".repeat(65537) }]), code("HF_INVALID"));
    }
    await store.close();
  }
  async function round(times) {
    await use(await holdfast.open(url), times);
    // Exact: every call and every handle is gone.
    await until(() => { collect(); return native.references() === base; });
    return {
      rss: process.memoryUsage().rss / 2 ** 20,
      files: fs.readdirSync("/proc/self/fd").length,
      threads: fs.readdirSync("/proc/self/task").length,
    };
  }
  // What the tests before have left open stays; what they have left to the collector goes.
  let base = native.references();
  for (let calm = 0; calm < 5; calm++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (native.references() !== base) calm = 0;
    base = native.references();
  }
  const first = await round(1000);
  const last = await round(2000);
  const told = JSON.stringify({ first, last });
  assert.ok(last.rss < first.rss + 30, told);
  assert.ok(last.files <= first.files + 2, told);
  assert.ok(last.threads <= first.threads + 2, told);
});
