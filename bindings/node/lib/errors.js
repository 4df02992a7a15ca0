"use strict";

// The names and numbers of hf_status.
const STATUS = [
  "HF_OK", "HF_INVALID", "HF_BAD_DATA", "HF_NO_MEMORY", "HF_UNREACHABLE", "HF_CONFIG", "HF_NO_SCHEMA",
  "HF_NOT_ACQUIRED", "HF_LOST", "HF_ORDER", "HF_DEADLOCK", "HF_COLLISION", "HF_SLOTS", "HF_QUOTA",
  "HF_NO_TRANSACTION", "HF_FORKED", "HF_INTERRUPTED", "HF_DATABASE", "HF_SYSTEM", "HF_IN_DOUBT",
  "HF_EXHAUSTED", "HF_CURSOR", "HF_ROLLED_BACK", "HF_AGAIN",
];

class HoldfastError extends Error {
  constructor(code, message, { sqlstate = "", hint = "", position = 0, status, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status ?? STATUS.indexOf(code);
    this.sqlstate = sqlstate;
    this.hint = hint;
    this.position = position;
  }
}
Object.defineProperty(HoldfastError.prototype, "name", { value: "HoldfastError", configurable: true, writable: true });

/** Of the six cells that the addon sends. */
function errorOf([status, code, message, sqlstate, hint, position]) {
  return new HoldfastError(code, message, { status, sqlstate, hint, position });
}

function invalid(message, hint) {
  return new HoldfastError("HF_INVALID", message, { hint });
}

module.exports = { HoldfastError, STATUS, errorOf, invalid };
