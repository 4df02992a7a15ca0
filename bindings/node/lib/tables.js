"use strict";

const { receive, forget } = require("./native");
const take = require("./arguments");
const { acquire } = require("./lock");

const VIEW = ["cluster", "database", "table", "id", "createdMs", "droppedMs", "references"];
const ADOPTED = ["rows", "tables", "minted", "rowsGiven", "references", "moved", "notNull", "foreignKey"];
const RELATION = ["schema", "relation", "file", "cluster", "database"];

const relation = Object.fromEntries(RELATION.map((name) => [name, take.textOrNull]));

/** Cells as objects with these names. */
function objects(names, cells) {
  const found = [];
  for (let at = 0; at < cells.length; at += names.length) {
    found.push(Object.fromEntries(names.map((name, column) => [name, cells[at + column]])));
  }
  return found;
}

const tableName = (name) => take.text(name, "the name of the table");

/** Shared tables, by names such as "cluster/database.table". */
class Tables {
  #scope;

  constructor(scope) {
    this.#scope = scope;
  }

  #call(operation, numbers, texts) {
    return this.#scope.invoke(operation, [this.#scope.handle], numbers, texts);
  }

  async register(name) {
    const [id, created] = await this.#call("tableRegister", [], [tableName(name)]);
    return { id, created };
  }

  /** Its id, or null: it is not registered. */
  async find(name) {
    const [id] = await this.#call("tableFind", [], [tableName(name)]);
    return id === 0n ? null : id;
  }

  async lock(name, options) {
    return acquire(this.#scope, "tableLock", options, [], [tableName(name)]);
  }

  async ref(name, context) {
    return (await this.#call("tableRef", [], [tableName(name), take.text(context, "the context")]))[0];
  }

  /** True: it was the last reference, and the id is retired. */
  async unref(name, context, options) {
    const { wait } = take.options(options, { wait: take.wait }, "unref");
    return (await this.#call("tableUnref", [wait], [tableName(name), take.text(context, "the context")]))[0];
  }

  async drop(name, options) {
    const { wait, theirRefsToo } = take.options(options, { wait: take.wait, theirRefsToo: take.flag }, "drop");
    await this.#call("tableDrop", [wait, theirRefsToo], [tableName(name)]);
  }

  async list(options) {
    const { name, retiredToo } = take.options(options, { name: take.textOrNull, retiredToo: take.flag }, "list");
    return objects(VIEW, await this.#call("tableList", [retiredToo], [name]));
  }

  async refs(name) {
    return this.#call("tableRefs", [], [tableName(name)]);
  }

  async adopt(options) {
    const given = take.options(options, {
      ...relation, dryRun: take.flag, constrain: take.flag, wait: take.wait, onFault: take.callback,
    }, "adopt");
    const event = receive((kind, [problem, table, context, advisoryId]) =>
      given.onFault?.({ problem, table, context, advisoryId }));
    try {
      const numbers = [event, given.dryRun, given.constrain, given.wait];
      return objects(ADOPTED, await this.#call("tableAdopt", numbers, RELATION.map((name) => given[name])))[0];
    } finally {
      forget(event);
    }
  }

  async leave(options) {
    const given = take.options(options, relation, "leave");
    await this.#call("tableLeave", [], RELATION.map((name) => given[name]));
  }
}

module.exports = { Tables, objects };
