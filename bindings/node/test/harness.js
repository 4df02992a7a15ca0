"use strict";

// Where the suite runs: HOLDFAST_TEST_URL, or a local folder of its own. HOLDFAST_TEST_ADMIN is the database as its
// superuser, HOLDFAST_TEST_POOLED says that a transaction pooler is in between, where there are no session locks.

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const readline = require("node:readline");
const { after } = require("node:test");
const { Client } = require("pg");
const holdfast = require("holdfast");

const URL = process.env.HOLDFAST_TEST_URL;
const ADMIN = process.env.HOLDFAST_TEST_ADMIN;
const isLocal = URL === undefined;
const isPooled = process.env.HOLDFAST_TEST_POOLED !== undefined;
const url = isLocal ? `local:${fs.mkdtempSync(path.join(os.tmpdir(), "hf-node-"))}` : URL;

/** Options of a test that needs what is not everywhere. */
const onSessions = { skip: isPooled && "there are no session locks behind a transaction pooler" };
const onServers = { skip: isLocal && "the local store has no sessions" };

const opened = [];
async function open(options, where = url) {
  const store = await holdfast.open(where, options);
  opened.push(store);
  return store;
}

after(async () => {
  await Promise.all(opened.map((store) => store.close()));
  if (isLocal) fs.rmSync(url.slice("local:".length), { recursive: true });
});

let names = 0;
const unique = (name) => `${name}-${process.pid}-${++names}`;

async function admin(sql, values = []) {
  const client = new Client({ connectionString: ADMIN });
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

const HELD = "locktype = 'advisory' AND granted AND (classid::int8 << 32 | objid::int8) = $1";

/** Takes the lock from whoever has it, by other means than the library's. */
async function lose(store, lock) {
  if (!isLocal) return admin(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE ${HELD}`, [lock.key]);
  const folder = path.join(store.name.slice("local:".length), "locks");
  for (const name of fs.readdirSync(folder)) fs.unlinkSync(path.join(folder, name));
}

function command(...args) {
  return spawn(process.env.HOLDFAST_COMMAND, args, { env: { ...process.env, HOLDFAST_URL: url }, stdio: ["pipe", "pipe", "pipe"] });
}

/** Another process, which holds the label until end() is called. */
async function hold(label) {
  const child = command("run", label, "--", "sh", "-c", "echo held; exec cat");
  await once(readline.createInterface(child.stdout), "line");
  return {
    async end() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

async function tries(label) {
  const child = command("run", "-n", label, "--", "true");
  child.stdin.end();
  child.stdout.resume();
  child.stderr.resume();
  return (await once(child, "exit"))[0];
}

/** Runs a program with Node, and gives { code, signal, out, err }. */
async function node(script, ...args) {
  const child = spawn(process.execPath, ["-e", script, ...args], { cwd: __dirname });
  let out = "", err = "";
  child.stdout.on("data", (data) => { out += data; });
  child.stderr.on("data", (data) => { err += data; });
  const [code, signal] = await once(child, "close");
  return { code, signal, out, err };
}

/** For assert.rejects. */
const code = (wanted) => (failure) => failure instanceof holdfast.HoldfastError && failure.code === wanted;

/** What it gives, once that is true. Records are written in the background, and sessions end there. */
async function until(look) {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A promise with the function that resolves it. */
function gate() {
  let open;
  const passed = new Promise((resolve) => { open = resolve; });
  return { passed, open };
}

/** The promise of a lock, once it waits. */
async function waiting(store, label, options) {
  const waits = gate();
  const lock = store.lock(label, { ...options, onWait: waits.open });
  lock.catch(() => {});
  await Promise.race([waits.passed, lock.then(() => { throw new Error("it did not wait"); })]);
  return { lock };
}

module.exports = {
  holdfast, url, isLocal, isPooled, onSessions, onServers, open, unique, admin, lose, hold, tries, node, code, gate, until,
  waiting,
};
