// The program URL ROUNDS PAIRS prints the seconds for so many acquires and releases, by the binding
// and by lib/pq.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"holdfast"

	_ "github.com/lib/pq"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func binding(ctx context.Context, store *holdfast.Store, pairs int) {
	for i := 0; i < pairs; i++ {
		lock, err := store.Lock(ctx, "bench/languages", holdfast.NoWait())
		check(err)
		check(lock.Release())
	}
}

func byHand(ctx context.Context, lock, unlock *sql.Stmt, pairs int) {
	const key = 4711
	var ok bool
	for i := 0; i < pairs; i++ {
		check(lock.QueryRowContext(ctx, key).Scan(&ok))
		check(unlock.QueryRowContext(ctx, key).Scan(&ok))
	}
}

func main() {
	ctx := context.Background()
	rounds, _ := strconv.Atoi(os.Args[2])
	pairs, _ := strconv.Atoi(os.Args[3])
	db, err := sql.Open("postgres", os.Args[1])
	check(err)
	conn, err := db.Conn(ctx) // a session lock needs one session
	check(err)
	lock, err := conn.PrepareContext(ctx, "SELECT pg_try_advisory_lock($1)")
	check(err)
	unlock, err := conn.PrepareContext(ctx, "SELECT pg_advisory_unlock($1)")
	check(err)
	store, err := holdfast.Open(ctx, os.Args[1])
	check(err)
	defer store.Close()
	binding(ctx, store, pairs)
	for i := 0; i < rounds; i++ {
		began := time.Now()
		binding(ctx, store, pairs)
		ours := time.Since(began)
		began = time.Now()
		byHand(ctx, lock, unlock, pairs)
		fmt.Println(ours.Seconds(), time.Since(began).Seconds())
	}
}
