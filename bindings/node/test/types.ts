// Compiled by tsc --strict: what must be right, and what must not compile. Run, it holds a lock with `await using`.
import assert from "node:assert/strict";
import { Client } from "pg";
import { HoldfastError, key, open, serialize, type Code, type Key, type Lock, type Store } from "holdfast";

async function rightTypes(store: Store, client: Client): Promise<void> {
  const code: Code = "HF_NOT_ACQUIRED";
  const derived: Key = key({ label: "a", as: "hashtext" });
  const token: bigint | null = (await store.lock(["a", 1n, { pair: [1, 2] }], { wait: 0, signal: AbortSignal.timeout(1) })).token;
  const n: number = await store.transact("a", async (tx) => (await tx.query("SELECT $1", [1n])).affected, { isolation: "read committed" });
  const text: string | null | undefined = await store.transact(null, async (tx) => (await tx.query("SELECT 1")).rows[0]?.["n"]);
  const bytes = await store.transact([], (tx) => tx.query("SELECT 1", [], { binary: true }));
  const buffer: Buffer | null | undefined = bytes.rows[0]?.["n"];
  const inner: string = await store.withLock("a", async (lock: Lock) => lock.state);
  const locked: Key = await serialize(client, "a", { store });
  const gaps: { from: bigint; to: bigint }[] = await (await store.network("n")).gaps(1, 2n);
  (await store.tables.lock("a.b")).on("lost", (why: HoldfastError) => why.sqlstate);
  const successor: Lock = await store.lock("a", { ask: true, onYield: (lock: Lock, who: string) => void lock.note("asked", who) });
  void [successor, code, derived, token, n, text, buffer, inner, locked, gaps];
}

async function wrongTypes(store: Store): Promise<void> {
  // @ts-expect-error a number is not a label: it may be a key of 53 bits
  await store.lock(42);
  // @ts-expect-error milliseconds are a number
  await store.lock("a", { wait: "1s" });
  // @ts-expect-error who asks is told as text
  await store.lock("a", { onYield: (lock: Lock, who: HoldfastError) => who.code });
  // @ts-expect-error there is no such option
  await store.lock("a", { timeout: 1 });
  // @ts-expect-error an object is not a value
  await store.transact(null, (tx) => tx.query("SELECT $1", [{}]));
  // @ts-expect-error there is no such derivation
  key({ label: "a", as: "sha1" });
  // @ts-expect-error keys are bigints
  const wrong: number = (await store.lock("a")).key;
  void wrong;
}

async function main(url: string): Promise<void> {
  await using store = await open(url);
  let seen: Lock;
  {
    await using lock = await store.lock("using", { wait: 0 });
    seen = lock;
    assert.equal(lock.state, "held");
  }
  assert.equal(seen.state, "released");
  void [rightTypes, wrongTypes];
  console.log("released");
}

main(process.argv[2] ?? "");
