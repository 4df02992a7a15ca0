// The program URL LABEL says "held" and holds until its input ends, or exits with 75.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"holdfast"
)

func main() {
	ctx := context.Background()
	store, err := holdfast.Open(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	lock, err := store.Lock(ctx, os.Args[2], holdfast.NoWait())
	if errors.Is(err, holdfast.ErrNotAcquired) {
		store.Close()
		os.Exit(75)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	if err := lock.Release(); err != nil {
		log.Fatal(err)
	}
	store.Close()
}
