// pg_advisory_lock(1) in a comment is nobody's lock.
/* Nor is SELECT pg_advisory_lock(2) here. */
const REPORT_LOCK = 42424242;
const apostrophe = /it's/;

export async function report(client: Client) {
  const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS got', [REPORT_LOCK]);
  if (!rows[0].got) throw new Error('somebody else holds pg_advisory_lock(1), try again');
  try {
    await run(client);
  } finally {
    const freed = await client.query('SELECT pg_advisory_unlock($1) AS freed', [REPORT_LOCK]);
    if (!freed.rows[0].freed) throw new Error('lost the lock');
  }
}

export async function lockThenBegin(prisma: PrismaClient) {
  await prisma.$transaction(async (tx) => {
    await tx.$queryRaw`SELECT pg_advisory_xact_lock(51515151)`;
    const rows = await tx.$queryRaw`SELECT total FROM invoices`;
    await tx.$executeRaw`UPDATE invoices SET total = total + 1`;
  });
}

export async function otherTransaction(prisma: PrismaClient) {
  await prisma.$transaction(async (tx) => count(tx), { isolationLevel: 'Serializable' });
}

// holdfast-ignore: unresolved-key its callers are in another repository
export async function imported(client: Client, tenant: string, key: bigint) {
  await client.query(`
    -- SELECT pg_advisory_lock(3) was here once
    SELECT pg_try_advisory_xact_lock($1)`, [key]);
}
