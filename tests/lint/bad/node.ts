import { Pool } from 'pg';
import advisoryLock from 'advisory-lock';

const REPORT_LOCK = 42424242;
const UNKNOWN_LOCK = 9_000_001n;
const pool = new Pool();

export async function unregistered(client: Client) {
  await client.query('SELECT pg_advisory_xact_lock($1)', [UNKNOWN_LOCK]); // expect: unregistered-id
  await client.query(`SELECT pg_advisory_xact_lock(${UNKNOWN_LOCK})`); // expect: unregistered-id
  await client.query('select PG_CATALOG.PG_ADVISORY_XACT_LOCK ( 77000::bigint )'); // expect: unregistered-id
  await client.query('SELECT pg_advisory_xact_lock(' + UNKNOWN_LOCK + ')'); // expect: unregistered-id
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended('order:' || $1, 0))", [id]); // expect: unregistered-label
}

export async function wrongLifetime(client: Client) {
  await client.query('SELECT pg_advisory_xact_lock($1)', [REPORT_LOCK]); // expect: wrong-lifetime
}

export async function trap(prisma: PrismaClient) {
  await prisma.$transaction(
    async (tx) => {
      await tx.$executeRaw`SELECT pg_advisory_xact_lock(51515151)`; // expect: snapshot-trap
      await tx.invoice.update({ where: { id: 1 }, data: { closed: true } });
    },
    { isolationLevel: 'Serializable' },
  );
}

export async function readFirst(client: Client) {
  const { rows } = await client.query('SELECT total FROM invoices WHERE id = $1', [1]);
  await client.query('SELECT pg_advisory_xact_lock(51515151)'); // expect: lock-after-read
  await client.query('UPDATE invoices SET total = $1 WHERE id = 1', [rows[0].total + 1]);
}

export async function ignoredResult(client: Client) {
  const got = await client.query('SELECT pg_try_advisory_lock($1) AS got', [REPORT_LOCK]);
  if (!got.rows[0].got) return;
  await client.query('SELECT pg_advisory_unlock($1)', [REPORT_LOCK]); // expect: unlock-result-ignored
}

const createMutex = advisoryLock('postgres://localhost/app');
const mutex = createMutex('global'); // expect: generic-label, unregistered-label
