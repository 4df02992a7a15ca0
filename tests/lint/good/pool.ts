export async function hold(pool: Pool) {
  const client = await pool.connect();
  const { rows } = await client.query('SELECT pg_try_advisory_lock(42424242) AS got');
  if (!rows[0].got) return;
  const freed = await client.query('SELECT pg_advisory_unlock(42424242) AS freed');
  return freed.rows[0].freed;
}
export async function fresh(tx: Tx, id: number) {
  await tx.$queryRaw`SELECT pg_advisory_xact_lock(51515151)`;
  const job = await tx.job.findUnique({ where: { id } });
  await tx.job.update({ where: { id }, data: { runs: job.runs + 1 } });
}
