"use strict";

const { HoldfastError } = require("./errors");
const { native } = require("./native");
const { Lock } = require("./lock");
const { key } = require("./arguments");
const { Store, open } = require("./store");
const { serialize } = require("./serialize");

module.exports = { open, key, serialize, Store, Lock, HoldfastError, version: native.version };
