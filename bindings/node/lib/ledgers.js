"use strict";

const take = require("./arguments");

/** The ledgers of one network in a store: cursors, and what is missing. */
class Network {
  #scope;
  #handle;

  constructor(scope, handle, name) {
    this.#scope = scope;
    this.#handle = scope.own(handle, "networkClose");
    this.name = name;
  }

  static async open(scope, name, options) {
    const given = take.options(options, {
      schema: take.textOrNull, latestCursor: take.textOrNull, oldestCursor: take.textOrNull,
      readWait: take.or(take.count(0), 0),
    }, "a network");
    const texts = [take.text(name, "the name"), given.schema, given.latestCursor, given.oldestCursor];
    const [handle] = await scope.invoke("networkOpen", [scope.handle], [given.readWait], texts);
    return new Network(scope, handle, name);
  }

  #call(operation, numbers, texts) {
    return this.#scope.invoke(operation, [this.#handle], numbers, texts);
  }

  /** The value as a bigint, or null: there is no such cursor, which is not the same as zero. */
  async cursor(name) {
    return (await this.#call("cursorGet", [], [take.text(name, "the cursor")]))[0];
  }

  async cursors() {
    const cells = await this.#call("cursorList", [], []);
    const found = new Map();
    for (let at = 0; at < cells.length; at += 2) found.set(cells[at], cells[at + 1]);
    return found;
  }

  async setCursor(name, value) {
    await this.#call("cursorSet", [take.integer(value)], [take.text(name, "the cursor")]);
  }

  async lowerCursor(name, value) {
    await this.#call("cursorSetMin", [take.integer(value)], [take.text(name, "the cursor")]);
  }

  async advanceCursor(name, value) {
    await this.#call("cursorAdvance", [take.integer(value)], [take.text(name, "the cursor")]);
  }

  async swapCursor(name, from, to) {
    await this.#call("cursorSwap", [take.integer(from), take.integer(to)], [take.text(name, "the cursor")]);
  }

  /** The ledgers that are missing, as [{ from, to }], both included. */
  async gaps(from = 0n, to = 0n) {
    const cells = await this.#call("networkGaps", [take.integer(from), take.integer(to)], []);
    const found = [];
    for (let at = 0; at < cells.length; at += 2) found.push({ from: cells[at], to: cells[at + 1] });
    return found;
  }

  async close() {
    await this.#scope.disown(this.#handle);
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

module.exports = { Network };
