// Moves money, one transfer of an account at a time: transfer_funds FROM TO SUM
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"holdfast"
)

var errCannotPay = errors.New("cannot pay")

// TransferFunds reads a balance under the labels of both accounts: nobody else can change it
// between the decision and COMMIT, and the snapshot is younger than the locks.
func TransferFunds(ctx context.Context, store *holdfast.Store, from, to string, sum int) error {
	labels := holdfast.Labels("Account:"+from, "Account:"+to)
	return store.Transact(ctx, labels, func(tx *holdfast.Tx) error {
		var balance int
		err := tx.QueryRow("SELECT balance FROM account WHERE name = $1", from).Scan(&balance)
		if err != nil {
			return err
		}
		if balance < sum {
			return errCannotPay // our own reason: nothing is written, nothing is tried again
		}
		err = tx.Queue("UPDATE account SET balance = balance - $2 WHERE name = $1", from, sum)
		if err != nil {
			return err
		}
		return tx.Queue("UPDATE account SET balance = balance + $2 WHERE name = $1", to, sum)
	})
}

func main() {
	if len(os.Args) != 4 {
		os.Exit(64)
	}
	sum, err := strconv.Atoi(os.Args[3])
	if err == nil {
		ctx := context.Background()
		var store *holdfast.Store
		if store, err = holdfast.Open(ctx, "", holdfast.FromEnvironment()); err == nil {
			err = TransferFunds(ctx, store, os.Args[1], os.Args[2], sum)
			store.Close()
		}
	}
	if err == errCannotPay {
		fmt.Fprintf(os.Stderr, "%s cannot pay %d\n", os.Args[1], sum)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil {
		os.Exit(1)
	}
}
