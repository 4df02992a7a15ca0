"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { holdfast, url, onServers, unique, code, admin, gate } = require("./harness");

const { serialize, key } = holdfast;

function connected(t) {
  const { PrismaPg } = require("@prisma/adapter-pg");
  const { PrismaClient } = require("../prisma");
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  t.after(() => prisma.$disconnect());
  return prisma;
}

const LONG = { maxWait: 30_000, timeout: 30_000 };
const holders = (label) => admin("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
  + " AND (classid::int8 << 32 | objid::int8) = $1", [key(label)]);

test("prisma: the label is locked until the transaction ends", onServers, async (t) => {
  const prisma = connected(t);
  const label = unique("Booking");
  const [locked, leave] = [gate(), gate()];
  const first = prisma.$transaction(async (tx) => {
    assert.equal(await serialize(tx, label), key(label));
    locked.open();
    await leave.passed;
  }, LONG);
  await locked.passed;
  assert.equal((await holders(label)).length, 1);
  leave.open();
  await first;
  assert.deepEqual(await holders(label), []);
});

test("prisma: where the lock would protect nothing it is refused", onServers, async (t) => {
  const prisma = connected(t);
  const label = unique("Booking");
  await assert.rejects(serialize(prisma, label), code("HF_NO_TRANSACTION"));
  for (const isolationLevel of ["RepeatableRead", "Serializable"]) {
    await assert.rejects(prisma.$transaction((tx) => serialize(tx, label), { ...LONG, isolationLevel }), code("HF_CONFIG"));
  }
  assert.deepEqual(await holders(label), []);
});

test("prisma: 20 transactions at once lose no update", onServers, async (t) => {
  const prisma = connected(t);
  const label = unique("Counter");
  const table = `counter_${process.pid}`;
  await admin(`CREATE TABLE ${table} AS SELECT 0 AS value`);
  await admin(`GRANT ALL ON ${table} TO PUBLIC`);
  await Promise.all(Array.from({ length: 20 }, () => prisma.$transaction(async (tx) => {
    await serialize(tx, label);
    const [{ value }] = await tx.$queryRawUnsafe(`SELECT value FROM ${table}`);
    await tx.$executeRawUnsafe(`UPDATE ${table} SET value = ${value + 1}`);
  }, LONG)));
  assert.deepEqual(await admin(`SELECT value FROM ${table}`), [{ value: 20 }]);
});
