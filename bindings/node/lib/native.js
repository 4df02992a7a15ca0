"use strict";

const path = require("node:path");
const { HoldfastError, errorOf, invalid } = require("./errors");

const ADDON = path.join(__dirname, "..", "prebuilds", `${process.platform}-${process.arch}`, "holdfast.node");

function load() {
  try {
    return require(ADDON);
  } catch (cause) {
    if (cause.code === "HF_CONFIG") throw new HoldfastError("HF_CONFIG", cause.message);
    throw new HoldfastError("HF_CONFIG", `the addon of Holdfast does not load: ${cause.message}`, {
      cause, hint: `run ${path.join(__dirname, "..", "build")}, which needs a C compiler and the headers of Node`,
    });
  }
}

// Whom an event is for. A lock is in here while it is held, so that the garbage collector leaves it alone.
const receivers = new Map();
let lastEvent = 0;

const native = load().start(([kind, event, ...cells]) => receivers.get(event)?.(kind, cells));

function receive(receiver) {
  receivers.set(++lastEvent, receiver);
  return lastEvent;
}

function forget(event) {
  receivers.delete(event);
}

// By signal: the handles that it triggers. It has one listener, as Node warns of leaks when there are many.
const triggered = new WeakMap();

/** Gives the function that ends it. */
function triggerOn(signal, cancel) {
  if (signal === undefined) return () => {};
  let entry = triggered.get(signal);
  if (!entry) {
    const cancels = new Set();
    entry = { cancels, abort: () => cancels.forEach((one) => native.interrupt(one)) };
    triggered.set(signal, entry);
    signal.addEventListener("abort", entry.abort);
  }
  entry.cancels.add(cancel);
  return () => {
    entry.cancels.delete(cancel);
    if (entry.cancels.size > 0) return;
    signal.removeEventListener("abort", entry.abort);
    triggered.delete(signal);
  };
}

/** What is open in one store: its calls are awaited, and the rest is closed, before it is. */
class Scope {
  handle = null;
  isClosed = false;
  calls = new Set();
  cancels = new Set();
  owned = new Map(); // handle: the operation that closes it
  held = new Set(); // handles of locks, for which the process stays

  async invoke(operation, handles, numbers = [], texts = []) {
    if (this.isClosed) throw invalid("the store is closed");
    return this.finish(operation, handles, numbers, texts);
  }

  /** As above, also while the store closes. */
  async finish(operation, handles, numbers = [], texts = []) {
    const call = native[operation](handles, numbers, texts);
    this.calls.add(call);
    try {
      return await call;
    } catch (reason) {
      throw Array.isArray(reason) ? errorOf(reason) : reason ?? invalid("the result is too large for JavaScript");
    } finally {
      this.calls.delete(call);
    }
  }

  own(handle, closer) {
    this.owned.set(handle, closer);
    return handle;
  }

  hold(handle) {
    this.held.add(handle);
    native.stay(true);
  }

  letGo(handle) {
    if (this.held.delete(handle)) native.stay(false);
  }

  /** Closes what is owned, if the store has not done it already. */
  disown(handle) {
    const closer = this.owned.get(handle);
    this.owned.delete(handle);
    this.letGo(handle);
    return closer ? this.finish(closer, [handle]) : Promise.resolve();
  }

  /** Runs work with a handle that the signal triggers; fails as fetch does when it was aborted. */
  async cancellable(signal, work) {
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("signal must be an AbortSignal");
    signal?.throwIfAborted();
    if (this.isClosed) throw invalid("the store is closed");
    const cancel = native.cancel();
    const stopTriggering = triggerOn(signal, cancel);
    this.cancels.add(cancel);
    try {
      return await work(cancel);
    } catch (failure) {
      if (signal?.aborted && failure.code === "HF_INTERRUPTED") throw signal.reason;
      throw failure;
    } finally {
      stopTriggering();
      this.cancels.delete(cancel);
      native.close(cancel);
    }
  }

  /** Ends waits and transactions, releases locks; resolves when all of it is done. */
  async close() {
    this.isClosed = true;
    native.interrupt(this.handle);
    for (const cancel of this.cancels) native.interrupt(cancel);
    for (const handle of [...this.owned.keys()]) this.disown(handle).catch(() => {});
    await Promise.allSettled(this.calls);
    await this.finish("storeClose", [this.handle]);
  }
}

module.exports = { native, receive, forget, Scope };
