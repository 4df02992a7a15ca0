"use strict";

const { receive, forget, Scope } = require("./native");
const { invalid } = require("./errors");
const take = require("./arguments");
const { acquire } = require("./lock");
const { transact } = require("./transaction");
const { Tables, objects } = require("./tables");
const { Network } = require("./ledgers");

const OPTIONS = {
  application: take.textOrNull, registry: take.textOrNull, records: take.choice(["auto", "off", "required"]),
  pingInterval: take.or(take.count(1), 0), pingDeadline: take.or(take.count(1), 0), kill: take.or(take.count(1), 0),
  connectTimeout: take.or(take.count(1), 0), maxWaits: take.or(take.count(1), 0), maxKeys: take.or(take.count(1), 0),
  maxTransactions: take.or(take.count(1), 0), machine: take.or(take.count(1), 0), sessionPool: take.flag,
  patience: take.or(take.wait, 0), environment: take.or(take.flag, undefined), log: take.callback,
  onSpan: take.callback,
};
const NUMBERS = [
  "records", "pingInterval", "pingDeadline", "kill", "connectTimeout", "maxWaits", "maxKeys", "sessionPool",
  "maxTransactions", "machine",
];
const LEVELS = ["debug", "info", "warning"];
const VIEW = [
  "key", "pair", "shared", "waiting", "ours", "sessionKnown", "transaction", "label", "application", "host", "pid",
  "backendPid", "ageMs", "ageIsBound", "token", "slot", "blockedBy", "name", "pattern", "idleMs", "idleHidden", "seenMs",
  "times", "knownAs", "lease", "leftMs", "traceparent",
];
const KINDS = ["wait", "hold", "transaction"];

function spanOf([kind, status, label, key, shared, slot, token, startNs, endNs, traceparent, parent, link]) {
  return { kind: KINDS[kind], status, label, key, shared, slot, token, startNs, endNs, traceparent, parent, link };
}

/** Where locks and records are. Any number of calls may run at once. */
class Store {
  #scope;
  #event;
  #closing = null;

  constructor(scope, event, [handle, name, isLocal, hasRecords]) {
    this.#scope = scope;
    this.#event = event;
    scope.handle = handle;
    scope.isLocal = isLocal;
    this.name = name;
    this.isLocal = isLocal;
    this.hasRecords = hasRecords;
    this.tables = new Tables(scope);
  }

  #call(operation, numbers, texts) {
    return this.#scope.invoke(operation, [this.#scope.handle], numbers, texts);
  }

  async lock(targets, options) {
    if (Array.isArray(targets) && targets.length === 0) throw invalid("a lock needs a label");
    return acquire(this.#scope, "lockAcquire", options, ...take.targets(targets));
  }

  /** Holds the lock while work runs. Fails with HF_LOST, after it, when the lock was lost. */
  async withLock(targets, options, work) {
    if (typeof options === "function") [options, work] = [undefined, options];
    if (typeof work !== "function") throw invalid("withLock needs a function");
    const lock = await this.lock(targets, options);
    let result;
    try {
      result = await work(lock);
    } catch (failure) {
      await lock[Symbol.asyncDispose]().catch(() => {});
      throw failure;
    }
    await lock[Symbol.asyncDispose]();
    return result;
  }

  /** Locks the labels, then runs the work in a transaction, again where it could not be committed. */
  async transact(labels, work, options) {
    return transact(this.#scope, "txBegin", this.#scope.handle, labels ?? [], work, options);
  }

  /** The key of a target, as the registry of the store has it: a bigint, or two int4. */
  async key(target) {
    const [isPair, key, ...pair] = await this.#call("resolveKey", ...take.targets([target]));
    return isPair ? pair : key;
  }

  /** The label of a lock of the registry, its placeholders filled: label("booking", { tenant: 7 }). */
  async label(name, values = {}) {
    if (values === null || typeof values !== "object") throw invalid("the values of a label are an object");
    const given = Object.entries(values).map(([placeholder, value]) => `${placeholder}=${value}`);
    const [label] = await this.#call("fillLabel", [], [take.text(name, "the name"), ...given.map((one) => take.text(one, "a value"))]);
    return label;
  }

  async network(name, options) {
    return Network.open(this.#scope, name, options);
  }

  /** Every advisory lock that is held or waited for now. */
  async locks() {
    return objects(VIEW, await this.#call("listLocks", [false, 0]));
  }

  /** What was recorded in the last so many milliseconds; without: everything. */
  async history(since) {
    return objects(VIEW, await this.#call("listLocks", [true, take.wait(since, "since")]));
  }

  /** Claims a run of a periodic job: { due, waitMs }. Call it while holding the job's lock. */
  async claim(label, period) {
    const [due, waitMs] = await this.#call("scheduleClaim", [take.wait(period, "period")], [take.text(label, "the label")]);
    return { due, waitMs };
  }

  /** Installs or upgrades the schema. */
  async init() {
    const [from, to] = await this.#call("storeInit");
    return { from, to };
  }

  /** What `holdfast doctor` prints. */
  async examine() {
    const levels = ["ok", "warning", "problem"];
    return objects(["level", "topic", "text", "remedy"], await this.#call("storeExamine"))
      .map((finding) => ({ ...finding, level: levels[finding.level] }));
  }

  /** Ends every wait and transaction, releases what is held, closes. Twice is as good as once. */
  async close() {
    this.#closing ??= this.#scope.close().finally(() => forget(this.#event));
    return this.#closing;
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

/**
 * "postgresql://…", a conninfo string, or "local:/path/to/folder". Without a url, or with { environment: true },
 * what is not given is what the holdfast command would use: HOLDFAST_URL, HOLDFAST_URL_FILE, DATABASE_URL, HOLDFAST_REGISTRY and so on.
 */
async function open(url, options) {
  const given = take.options(options, OPTIONS, "a store");
  const scope = new Scope();
  const event = receive((kind, cells) => {
    if (kind === "span") given.onSpan(spanOf(cells));
    else given.log(LEVELS[cells[0]], cells[1]);
  });
  const numbers = [event, ...NUMBERS.map((name) => given[name]), given.log !== undefined, given.environment ?? url == null,
    given.patience, given.onSpan !== undefined];
  try {
    const texts = [take.textOrNull(url, "the url"), given.application, given.registry];
    return new Store(scope, event, await scope.invoke("storeOpen", [], numbers, texts));
  } catch (failure) {
    forget(event);
    throw failure;
  }
}

module.exports = { Store, open };
