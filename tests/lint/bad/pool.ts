export async function hold(pool: Pool, tx: Client) {
  const { rows } = await pool.query('SELECT pg_try_advisory_lock(42424242) AS got'); // expect: lock-on-pool
  if (!rows[0].got) return;
  await tx.query('SELECT pg_try_advisory_xact_lock(51515151)'); // expect: try-result-ignored
  const freed = await pool.query('SELECT pg_advisory_unlock(42424242) AS freed');
  return freed.rows[0].freed;
}
export async function viaPrisma(prisma: PrismaClient) {
  const got = await prisma.$queryRaw`SELECT pg_advisory_lock(42424242)`; // expect: lock-on-pool
  return got;
}
export async function stale(tx: Tx, id: number) {
  const job = await tx.job.findUnique({ where: { id } });
  await tx.$queryRaw`SELECT pg_advisory_xact_lock(51515151)`; // expect: lock-after-read
  await tx.job.update({ where: { id }, data: { runs: job.runs + 1 } });
}
export async function trap(dataSource: DataSource) {
  await dataSource.transaction('SERIALIZABLE', async (m) => {
    await m.query('SELECT pg_advisory_xact_lock(51515151)'); // expect: snapshot-trap
  });
}
