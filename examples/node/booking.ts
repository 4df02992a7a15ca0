// Books a room, one booking per tenant and date at a time: booking TENANT DATE ROOM
import { open, type Transaction } from "holdfast";

class Taken extends Error {}

async function book(tx: Transaction, tenant: string, date: string, room: string): Promise<void> {
  const taken = await tx.query("SELECT 1 FROM booking WHERE tenant = $1 AND day = $2 AND room = $3", [tenant, date, room]);
  if (taken.rows.length > 0) throw new Taken();
  await tx.queue("INSERT INTO booking (tenant, day, room) VALUES ($1, $2, $3)", [tenant, date, room]); // goes with COMMIT
}

async function main([tenant, date, room]: string[]): Promise<void> {
  if (tenant === undefined || date === undefined || room === undefined) throw new Error("booking TENANT DATE ROOM");
  await using store = await open(); // HOLDFAST_URL, or a local folder
  try {
    // The label is locked before the snapshot is taken, so the check sees what the last holder committed.
    await store.transact(`Booking:${tenant}:${date}`, (tx) => book(tx, tenant, date, room));
    console.log("booked");
  } catch (failure) {
    if (!(failure instanceof Taken)) throw failure; // rolled back, and it comes out as it was thrown
    console.log("taken");
    process.exitCode = 1;
  }
}

main(process.argv.slice(2)).catch((failure) => {
  console.error(failure.message);
  process.exitCode = 1;
});
