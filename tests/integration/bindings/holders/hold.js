// hold.js URL LABEL: says "held" and holds until its input ends, or exits with 75.
"use strict";

const holdfast = require("holdfast");

async function main(url, label) {
  const store = await holdfast.open(url);
  try {
    const lock = await store.lock(label, { wait: 0 });
    console.log("held");
    for await (const _ of process.stdin);
    await lock.release();
  } catch (error) {
    if (error.code !== "HF_NOT_ACQUIRED") throw error;
    process.exitCode = 75;
  } finally {
    await store.close();
  }
}

main(process.argv[2], process.argv[3]);
