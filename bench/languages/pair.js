// pair.js URL ROUNDS PAIRS pg|advisory-lock: seconds for so many acquires and releases, by the binding and by that.
"use strict";

const holdfast = require("holdfast");
const pg = require("pg");

async function binding(store, pairs) {
  for (let i = 0; i < pairs; i++) await (await store.lock("bench/languages", { wait: 0 })).release();
}

async function byHand(client, pairs) {
  const key = [String(holdfast.key("bench/languages, by hand"))];
  for (let i = 0; i < pairs; i++) {
    const got = await client.query({ name: "lock", text: "SELECT pg_try_advisory_lock($1) AS ok", values: key });
    const gone = await client.query({ name: "unlock", text: "SELECT pg_advisory_unlock($1) AS ok", values: key });
    if (!got.rows[0].ok || !gone.rows[0].ok) throw new Error("not locked");
  }
}

async function byAdvisoryLock(mutex, pairs) {
  for (let i = 0; i < pairs; i++) await (await mutex.tryLock())();
}

async function seconds(run, on, pairs) {
  const began = process.hrtime.bigint();
  await run(on, pairs);
  return Number(process.hrtime.bigint() - began) / 1e9;
}

async function main(url, rounds, pairs, control) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const store = await holdfast.open(url);
  const [run, on] = control === "pg" ? [byHand, client]
    : [byAdvisoryLock, (await import("advisory-lock")).default.default(url)("bench/languages")];
  await binding(store, pairs);
  for (let i = 0; i < rounds; i++)
    console.log(await seconds(binding, store, pairs), await seconds(run, on, pairs));
  await store.close();
  await client.end();
}

main(process.argv[2], Number(process.argv[3]), Number(process.argv[4]), process.argv[5]);
