"use strict";

const { receive, forget } = require("./native");
const { HoldfastError, STATUS, invalid } = require("./errors");
const take = require("./arguments");

const OPTIONS = {
  isolation: take.choice(["serializable", "repeatable read", "read committed"]),
  readOnly: take.flag, retryUnique: take.flag, deadline: take.or(take.wait, 0), maxAttempts: take.or(take.count(1), 0),
  backoffMin: take.or(take.count(0), 0), backoffMax: take.or(take.count(0), 0), expectOperation: take.flag,
  owner: take.owner, onStats: take.callback, database: take.textOrNull, signal: take.same,
  traceparent: take.textOrNull,
};

/** A parameter as text or bytes. SQLite has no booleans: there they are 1 and 0. */
function parameter(value, isLocal) {
  switch (typeof value) {
    case "undefined": return null;
    case "string": return take.text(value, "a value");
    case "number": case "bigint": return String(value);
    case "boolean": return isLocal ? String(Number(value)) : String(value);
    case "object":
      if (value === null) return null;
      if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
  }
  throw invalid(`a value cannot be ${Array.isArray(value) ? "an array" : `of type ${typeof value}`}`,
    "a string, number, bigint, boolean, Date, Uint8Array or null; JSON.stringify for json");
}

function statement(sql, values, isLocal) {
  if (!Array.isArray(values)) throw invalid("the values of a statement must be an array");
  return [take.text(sql, "the statement"), ...values.map((value) => parameter(value, isLocal))];
}

/** One attempt. Its statements run one after the other, however they are started. */
class Transaction {
  #scope;
  #handle;
  #isOpen = true;
  #last = Promise.resolve();

  constructor(scope, handle, attempt, traceparent) {
    this.#scope = scope;
    this.#handle = handle;
    this.attempt = attempt;
    this.traceparent = traceparent;
  }

  #step(operation, numbers, texts) {
    if (!this.#isOpen) throw invalid("the transaction, or this attempt of it, has ended");
    const done = this.#last.then(() => this.#scope.invoke(operation, [this.#handle], numbers, texts));
    this.#last = done.catch(() => {});
    return done;
  }

  /** Values are strings or null; Buffers with { binary: true }. */
  async query(sql, values = [], options) {
    const { binary } = take.options(options, { binary: take.flag }, "a query");
    const [affected, width, ...cells] =
      await this.#step("txQuery", [binary], statement(sql, values, this.#scope.isLocal));
    const columns = cells.slice(0, width);
    const rows = [];
    for (let at = width; at < cells.length; at += width) {
      rows.push(Object.fromEntries(columns.map((name, column) => [name, cells[at + column]])));
    }
    return { rows, columns, affected };
  }

  /** Goes with the next query, or with COMMIT, and fails there. */
  async queue(sql, values = []) {
    await this.#step("txQueue", [0], statement(sql, values, this.#scope.isLocal));
  }

  /** One more label, before the first statement. */
  async serialize(label) {
    await this.#step("txSerialize", ...take.targets(label));
  }

  /** No step begins from here on; resolves when the last is done. */
  static end(tx) {
    tx.#isOpen = false;
    return tx.#last;
  }
}

/** Runs the work once: [true, what it gave] or [false, what it threw]. */
async function attempt(work, tx) {
  try {
    return [true, await work(tx)];
  } catch (failure) {
    return [false, failure];
  } finally {
    await Transaction.end(tx);
  }
}

/** What hf_tx_end is told of the work. */
function verdict(isDone, failure) {
  if (isDone) return [[0], [null, null, null]];
  const ours = failure instanceof HoldfastError && failure.status > 0 && failure.status < STATUS.indexOf("HF_AGAIN");
  return ours
    ? [[failure.status], [failure.message, failure.sqlstate, failure.hint]]
    : [[STATUS.indexOf("HF_ROLLED_BACK")], [null, null, null]];
}

async function drive(scope, handle, traceparent, work) {
  for (let number = 1, again = true; again;) {
    const [isDone, result] = await attempt(work, new Transaction(scope, handle, number, traceparent));
    try {
      [again, number] = await scope.invoke("txEnd", [handle], ...verdict(isDone, result));
    } catch (failure) {
      // The caller's own error goes through as it is.
      if (!isDone && (failure.code === "HF_ROLLED_BACK" || failure.code === result?.code)) throw result;
      if (!isDone) failure.cause = result;
      throw failure;
    }
    if (!again) return result;
  }
}

function stats(cells) {
  const [label, key, attempts, waitMs, holdMs, outcome] = cells;
  return { label, key, attempts, waitMs, holdMs, outcome };
}

/** On a store, or on the session of a lock. */
async function transact(scope, operation, handle, labels, work, options) {
  if (typeof work !== "function") throw invalid("a transaction needs a function");
  const given = take.options(options, OPTIONS, "a transaction");
  const [targets, names] = take.targets(labels);
  const event = receive((kind, cells) => given.onStats(stats(cells)));
  const numbers = [
    event, given.isolation, given.readOnly, given.retryUnique, Math.max(0, given.deadline), given.maxAttempts,
    given.backoffMin, given.backoffMax, given.expectOperation, given.owner, given.onStats !== undefined, ...targets,
  ];
  try {
    return await scope.cancellable(given.signal, async (cancel) => {
      const [tx, traceparent] =
        await scope.invoke(operation, [handle, cancel], numbers, [given.database, given.traceparent, ...names]);
      scope.own(tx, "txClose");
      try {
        return await drive(scope, tx, traceparent, work);
      } finally {
        await scope.disown(tx);
      }
    });
  } finally {
    forget(event);
  }
}

module.exports = { transact };
