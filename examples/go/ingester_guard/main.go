// One live ingester per network; the others stand by: ingester_guard NETWORK LEDGERS
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"holdfast"
)

func ingest(ctx context.Context, network string, ledgers int) error {
	store, err := holdfast.Open(ctx, "", holdfast.FromEnvironment())
	if err != nil {
		return err
	}
	defer store.Close()
	lock, err := store.Lock(ctx, "Ingest:"+network, holdfast.Private(),
		holdfast.OnWait(func(why error) { fmt.Println("standing by:", why) }))
	if err != nil {
		return err
	}
	defer lock.Release()
	fmt.Println("ingesting")
	for sequence := 1; sequence <= ledgers; sequence++ {
		select {
		case <-lock.Lost(): // stop at once; what comes later would not be committed anyway
			return lock.Err()
		default:
		}
		// On the session that holds the lock: a ledger is written under the lock or not at all.
		err := lock.Transact(ctx, func(tx *holdfast.Tx) error {
			return tx.Queue("INSERT INTO ledger (sequence) VALUES ($1)", sequence)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 3 {
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // ends the wait as well
	defer stop()
	ledgers, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = ingest(ctx, os.Args[1], ledgers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
