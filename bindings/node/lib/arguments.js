"use strict";

// Checks what callers give, and turns it into what the addon takes: numbers and texts.

const { native } = require("./native");
const { invalid } = require("./errors");

const INT64_MAX = 2n ** 63n;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The options by name: each must be known, and is converted. */
function options(given, known, where) {
  if (given === undefined || given === null) given = {};
  if (typeof given !== "object" || Array.isArray(given)) throw invalid(`the options of ${where} must be an object`);
  for (const name of Object.keys(given)) {
    if (!(name in known)) {
      throw invalid(`${where} has no option ${JSON.stringify(name)}`, `it has ${Object.keys(known).join(", ")}`);
    }
  }
  return Object.fromEntries(Object.entries(known).map(([name, convert]) => [name, convert(given[name], name)]));
}

const or = (convert, otherwise) => (value, name) => (value === undefined ? otherwise : convert(value, name));

function flag(value, name) {
  if (value === undefined) return false;
  if (typeof value !== "boolean") throw invalid(`${name} must be true or false`);
  return value;
}

/** From `least` to what an int of C holds. */
const count = (least) => (value, name) => {
  if (!Number.isInteger(value) || value < least || value > 0x7fffffff) {
    throw invalid(`${name} must be a whole number of at least ${least}`);
  }
  return value;
};

/** Milliseconds; undefined and Infinity are for ever. */
function wait(value, name = "wait") {
  if (value === undefined || value === Infinity) return -1;
  if (typeof value !== "number" || !(value >= 0) || value > Number.MAX_SAFE_INTEGER) {
    throw invalid(`${name} must be a number of milliseconds, at least 0`);
  }
  return Math.ceil(value);
}

function integer(value, name = "the value") {
  if (typeof value === "number" && Number.isSafeInteger(value)) value = BigInt(value);
  if (typeof value !== "bigint" || value < -INT64_MAX || value >= INT64_MAX) {
    throw invalid(`${name} must be a bigint of 64 bits, or a whole number`);
  }
  return value;
}

function owner(value) {
  if (value === undefined) return 0;
  const number = integer(value, "owner");
  if (number < 1n || number >= 2n ** 62n) throw invalid("owner must be from 1 to 2^62 - 1");
  return number;
}

function text(value, name = "the text") {
  if (typeof value !== "string") throw invalid(`${name} must be a string`);
  if (value.includes("\0")) throw invalid(`${name} has a NUL character`);
  return wellFormed(value, name);
}

// UTF-8 has no half characters: two different labels would become one.
function wellFormed(value, name) {
  if (LONE_SURROGATE.test(value)) throw invalid(`${name} has half a surrogate pair`);
  return value;
}

const textOrNull = (value, name) => (value === undefined || value === null ? null : text(value, name));

function callback(value, name) {
  if (value !== undefined && typeof value !== "function") throw invalid(`${name} must be a function`);
  return value;
}

const same = (value) => value;

const choice = (names) => (value, name) => {
  const number = value === undefined ? 0 : names.indexOf(value);
  if (number < 0) throw invalid(`${name} must be one of ${names.map((one) => JSON.stringify(one)).join(", ")}`);
  return number;
};

function derivation(name) {
  const number = native.derivations.indexOf(name ?? "sha256");
  if (number < 0) throw invalid(`there is no derivation ${JSON.stringify(name)}`, `one of ${native.derivations.join(", ")}`);
  return number;
}

/** A bigint, also where it stands for two int4. */
function derive(number, name) {
  const derived = native.derive(number, typeof name === "string" ? Buffer.from(name) : name);
  if (typeof derived === "string") throw invalid(derived);
  return derived;
}

const FIXED = native.derivations.indexOf("fixed");

function label(value) {
  if (typeof value === "string") return wellFormed(value, "the label");
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw invalid("a label must be a string or bytes", 'or { label, as: "hashtext" }, { key: 42n }, { pair: [1, 2] }');
}

function int4(value) {
  if (!Number.isInteger(value) || value !== (value | 0)) throw invalid("a pair must be of two int4");
  return value;
}

/** One target as [numbers, label]. */
function target(value) {
  if (typeof value === "bigint") return target({ key: value });
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return [[0, 0, 0, 0, 0], label(value)];
  const { label: name, as, key, pair, ...rest } = value;
  if (Object.keys(rest).length > 0) throw invalid(`a target has no ${Object.keys(rest)[0]}`);
  const named = name === undefined ? null : label(name);
  if (pair !== undefined) {
    if (!Array.isArray(pair) || pair.length !== 2) throw invalid("a pair must be of two int4");
    return [[0, 1, 0, int4(pair[0]), int4(pair[1])], named];
  }
  if (key !== undefined) return [[FIXED, 0, integer(key, "the key"), 0, 0], named];
  if (named === null) throw invalid("a target needs a label, a key or a pair");
  const number = derivation(as);
  return [[number, 0, number === FIXED ? derive(number, named) : 0, 0, 0], named];
}

/** The key of a target: a bigint, or two int4. */
function key(value) {
  const [[number, isPair, fixed, ...pair], name] = target(value);
  if (isPair) return pair;
  if (number === FIXED) return BigInt(fixed);
  const derived = derive(number, name);
  return native.pairs[number] ? [Number(derived >> 32n), Number(BigInt.asIntN(32, derived))] : derived;
}

/** Several, or one, as [numbers, labels]. */
function targets(values) {
  const pairs = (Array.isArray(values) ? values : [values]).map(target);
  return [pairs.flatMap(([numbers]) => numbers), pairs.map(([, name]) => name)];
}

module.exports = {
  options, or, flag, count, wait, integer, owner, text, textOrNull, callback, choice, same, key, targets,
};
