"use strict";

const { randomUUID } = require("node:crypto");
const { HoldfastError, invalid } = require("./errors");
const take = require("./arguments");

/** Runs a statement on a transaction of Prisma or a client of pg; gives its first row. */
function runner(client) {
  if (typeof client?.$queryRaw === "function") {
    return async (strings, ...values) => (await client.$queryRaw(strings, ...values))[0];
  }
  if (typeof client?.query === "function") {
    return async (strings, ...values) => {
      const text = strings.reduce((sql, part, index) => `${sql}$${index}${part}`);
      return (await client.query(text, values)).rows[0];
    };
  }
  throw invalid("serialize needs a transaction of Prisma ($queryRaw) or a client of pg (query)");
}

const HINT = "store.transact locks first and takes the snapshot then, or use READ COMMITTED";

/**
 * Locks a label until the caller's own transaction ends. Only READ COMMITTED is served: elsewhere
 * the statement that waits has the snapshot already, which is then older than the lock.
 *
 * That there is a transaction is proven by a setting that ends with it, and that a second statement
 * must still find.
 */
async function serialize(client, target, options) {
  const { store } = take.options(options, { store: take.same }, "serialize");
  const run = runner(client);
  const key = store ? await store.key(target) : take.key(target);
  const mark = randomUUID();
  const found = await run`SELECT current_setting('transaction_isolation') AS isolation,
    set_config('holdfast.serialize', ${mark}::text, true) AS mark`;
  if (found.isolation !== "read committed" && found.isolation !== "read uncommitted") {
    throw new HoldfastError("HF_CONFIG",
      `under ${found.isolation.toUpperCase()} the snapshot is older than the lock, which would protect nothing`, { hint: HINT });
  }
  const taken = Array.isArray(key)
    ? await run`SELECT CASE WHEN current_setting('holdfast.serialize', true) = ${mark}::text
        THEN 'held' || pg_advisory_xact_lock(${key[0]}::int4, ${key[1]}::int4)::text END AS lock`
    : await run`SELECT CASE WHEN current_setting('holdfast.serialize', true) = ${mark}::text
        THEN 'held' || pg_advisory_xact_lock(${key}::int8)::text END AS lock`;
  if (taken.lock === null) {
    throw new HoldfastError("HF_NO_TRANSACTION", "there is no open transaction: the lock would be gone at once", {
      hint: "begin one on the same client; with Prisma: $transaction(async (tx) => serialize(tx, …))",
    });
  }
  return key;
}

module.exports = { serialize };
