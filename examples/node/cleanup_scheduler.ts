// Cleans up now and then, in one of many instances: cleanup_scheduler SECONDS TIMES
import { setTimeout as pause } from "node:timers/promises";
import { HoldfastError, open, type Store } from "holdfast";

const LABEL = "Cleanup:sessions";

async function once(store: Store, periodMs: number, stop: AbortSignal): Promise<void> {
  // Who comes second leaves it to the first. A private lock has a session of its own:
  await using lock = await store.lock(LABEL, { wait: 0, private: true, signal: stop });
  const { due, waitMs } = await store.claim(LABEL, periodMs); // by the clock of the store
  if (!due) {
    console.log(`not due for ${waitMs} ms`);
    return;
  }
  // ... so what the transaction writes is written under the lock, or not at all.
  const { affected } = await lock.transact((tx) => tx.query("DELETE FROM session WHERE expires < 100"), { signal: stop });
  console.log(`cleaned ${affected} with token ${lock.token}`);
}

async function main([seconds, times]: string[]): Promise<void> {
  const periodMs = Number(seconds) * 1000;
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  await using store = await open(null, { application: "cleanup" });
  for (let i = 0; i < Number(times); i++) {
    if (i > 0) await pause(periodMs, undefined, { signal: stop.signal });
    try {
      await once(store, periodMs, stop.signal);
    } catch (failure) {
      if (!(failure instanceof HoldfastError) || failure.code !== "HF_NOT_ACQUIRED") throw failure;
      console.log(`skipped: ${failure.message}`); // names the one that cleans
    }
  }
}

main(process.argv.slice(2)).catch((failure) => {
  if (failure.name === "AbortError") return;
  console.error(failure.message);
  process.exitCode = 1;
});
