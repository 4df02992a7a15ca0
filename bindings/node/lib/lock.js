"use strict";

const { EventEmitter } = require("node:events");
const { receive, forget } = require("./native");
const { invalid, errorOf, HoldfastError } = require("./errors");
const take = require("./arguments");
const { transact } = require("./transaction");

const FLAGS = { reentrant: 1, anyOrder: 2, private: 4, needToken: 8, ask: 16 };
const OPTIONS = {
  wait: take.wait, signal: take.same, shared: take.flag, slots: take.or(take.count(1), 0), owner: take.owner,
  lease: take.or(take.count(1), 0),
  reentrant: take.flag, anyOrder: take.flag, private: take.flag, needToken: take.flag, ask: take.flag,
  onWait: take.callback, onYield: take.callback, traceparent: take.textOrNull,
};

/** A lock that is held. Emits "lost", once, with the reason. */
class Lock extends EventEmitter {
  #scope;
  #handle;
  #event;
  #state = "held";
  #transactions = 0;
  #tell;
  #lost = new Promise((resolve) => { this.#tell = resolve; });
  #controller = new AbortController();

  constructor(scope, handle, event, key, token, slot, traceparent) {
    super();
    this.#scope = scope;
    this.#handle = scope.own(handle, "lockClose");
    scope.hold(handle);
    this.#event = event;
    this.key = key;
    this.token = token;
    this.slot = slot;
    this.traceparent = traceparent;
  }

  get state() {
    return this.#state === "held" && !this.#scope.owned.has(this.#handle) ? "released" : this.#state;
  }

  /** Resolves with the reason when the lock is lost; stays pending else. */
  get lost() {
    return this.#lost;
  }

  /** Aborted when the lock is lost. */
  get signal() {
    return this.#controller.signal;
  }

  /** Only the addon's events come here. */
  static lose(lock, why) {
    if (lock.state !== "held") return;
    forget(lock.#event);
    lock.#scope.letGo(lock.#handle);
    lock.#state = "lost";
    lock.#controller.abort(why);
    lock.#tell(why);
    lock.emit("lost", why);
  }

  async release() {
    if (!this.#scope.owned.has(this.#handle)) throw invalid("the lock was released before");
    if (this.#transactions > 0) {
      throw new HoldfastError("HF_ORDER", "a transaction on the session of the lock is open", { hint: "await it first" });
    }
    this.#scope.owned.delete(this.#handle);
    this.#scope.letGo(this.#handle);
    try {
      await this.#scope.finish("lockRelease", [this.#handle]);
      this.#state = "released";
    } catch (failure) {
      this.#state = failure.code === "HF_LOST" ? "lost" : "released";
      throw failure;
    } finally {
      forget(this.#event);
    }
  }

  async note(event, detail) {
    await this.#scope.invoke("lockNote", [this.#handle], [], [take.text(event, "event"), take.textOrNull(detail, "detail")]);
  }

  /** A transaction on the session of a lock that is private. */
  async transact(work, options) {
    this.#transactions++;
    try {
      return await transact(this.#scope, "txBeginOn", this.#handle, [], work, options);
    } finally {
      this.#transactions--;
    }
  }

  /** Releases it, unless that was done before. A loss is told. */
  async [Symbol.asyncDispose]() {
    if (this.#scope.owned.has(this.#handle)) await this.release();
  }
}

/** For lockAcquire and tableLock, whose first text is the name of the table. */
async function acquire(scope, operation, options, numbers, texts) {
  const given = take.options(options, OPTIONS, "a lock");
  const early = [];
  let lock;
  const tell = (kind, why) => {
    if (kind === "lost") Lock.lose(lock, why);
    else if (lock.state === "held") given.onYield(lock, why.message);
  };
  const event = receive((kind, cells) => {
    const why = errorOf(cells);
    if (kind === "wait") given.onWait(why);
    else if (lock) tell(kind, why);
    else early.push(() => tell(kind, why));
  });
  const flags = Object.keys(FLAGS).reduce((all, name) => all | (given[name] ? FLAGS[name] : 0), 0);
  const spec = [event, given.shared, given.wait, flags, given.slots, given.owner, given.onWait !== undefined,
    given.lease, given.onYield !== undefined];
  const all = operation === "tableLock" ? [...texts, given.traceparent] : [given.traceparent, ...texts];
  try {
    const [handle, ...facts] = await scope.cancellable(given.signal, (cancel) =>
      scope.invoke(operation, [scope.handle, cancel], [...spec, ...numbers], all));
    lock = new Lock(scope, handle, event, ...facts);
  } catch (failure) {
    forget(event);
    throw failure;
  }
  // What was aborted is not held, even if the lock came in the same moment.
  if (given.signal?.aborted || scope.isClosed) {
    await lock.release().catch(() => {});
    throw given.signal?.aborted ? given.signal.reason : invalid("the store is closed");
  }
  // Listeners come after the await.
  early.forEach((told) => setImmediate(told));
  return lock;
}

module.exports = { Lock, acquire };
