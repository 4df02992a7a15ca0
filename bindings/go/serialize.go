package holdfast

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"reflect"
)

// rowScanner is what both database/sql's *Row and pgx's Row are.
type rowScanner interface {
	Scan(to ...any) error
}

// Serialize acquires a transaction lock on the application's own transaction of PostgreSQL, by SQL,
// with the key that Holdfast derives from the label. The lock ends with the transaction.
//
// tx is anything with database/sql's QueryRowContext, such as a *sql.Tx, or with pgx's QueryRow,
// such as a pgx.Tx. It is refused where the lock would protect nothing: ErrNoTransaction where no
// transaction is open, and ErrConfig under REPEATABLE READ and SERIALIZABLE, where the statement
// that waits for the lock has taken the transaction's snapshot before, so that what the last holder
// committed stays unseen. Use Store.Transact there: it acquires labels before the snapshot.
func Serialize(ctx context.Context, tx any, label string) error {
	return SerializeAs(ctx, tx, label, SHA256)
}

// SerializeAs is Serialize for labels that other programs lock by a key of their own.
func SerializeAs(ctx context.Context, tx any, label string, how Derivation) error {
	query, err := queryRow(tx)
	if err != nil {
		return err
	}
	key, err := DeriveKey(how, label)
	if err != nil {
		return err
	}
	var mark [16]byte
	if _, err := rand.Read(mark[:]); err != nil {
		return refuse(ErrSystem, "", "no random numbers: %v", err)
	}
	return serialize(ctx, query, hex.EncodeToString(mark[:]), key, how.IsPair())
}

type queryFn func(ctx context.Context, query string, args ...any) rowScanner

// queryRow finds the method by its shape: naming pgx's types would make everybody build it.
func queryRow(tx any) (queryFn, error) {
	if _, ok := tx.(*sql.DB); ok {
		return nil, noTransaction("a *sql.DB runs each statement by itself")
	}
	if std, ok := tx.(interface {
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}); ok && !reflect.ValueOf(tx).IsZero() {
		return func(ctx context.Context, query string, args ...any) rowScanner {
			return std.QueryRowContext(ctx, query, args...)
		}, nil
	}
	for _, name := range []string{"QueryRowContext", "QueryRow"} {
		if fn := shaped(tx, name); fn != nil {
			return fn, nil
		}
	}
	return nil, refuse(ErrInvalid, "give the transaction: a *sql.Tx, or a pgx.Tx",
		"a %T has neither QueryRowContext nor QueryRow with a context, or is nil", tx)
}

var shapeIn = reflect.TypeOf((func(context.Context, string, ...any))(nil))

func shaped(tx any, name string) queryFn {
	value := reflect.ValueOf(tx)
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil
	}
	method := value.MethodByName(name)
	if !method.IsValid() {
		return nil
	}
	shape := method.Type()
	if shape.NumIn() != 3 || !shape.IsVariadic() || shape.NumOut() != 1 ||
		!shape.Out(0).Implements(reflect.TypeOf((*rowScanner)(nil)).Elem()) {
		return nil
	}
	for i := 0; i < shape.NumIn(); i++ {
		if shape.In(i) != shapeIn.In(i) {
			return nil
		}
	}
	return func(ctx context.Context, query string, args ...any) rowScanner {
		in := []reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(query)}
		for _, arg := range args {
			in = append(in, reflect.ValueOf(arg))
		}
		return method.Call(in)[0].Interface().(rowScanner)
	}
}

func noTransaction(format string, args ...any) error {
	return refuse(ErrNoTransaction, "begin a transaction, and give it to Serialize",
		"no transaction is open, so the lock would be gone at once: "+format, args...)
}

// serialize leaves a mark that only the transaction's own next statement can read: where it cannot,
// each statement is a transaction by itself. The lock is acquired only by a statement that has
// found the mark.
func serialize(ctx context.Context, query queryFn, mark string, key int64, isPair bool) error {
	const leave = "SELECT pg_catalog.current_setting('transaction_isolation')," +
		" pg_catalog.set_config('holdfast.serialize', $1, true)"
	const find = "SELECT CASE WHEN pg_catalog.current_setting('holdfast.serialize', true) = $1 THEN" +
		" pg_catalog.pg_advisory_xact_lock(%s) IS NOT NULL ELSE false END"
	var isolation, left string
	if err := query(ctx, leave, mark).Scan(&isolation, &left); err != nil {
		return driverFailed(ctx, err)
	}
	if isolation != "read committed" && isolation != "read uncommitted" {
		return refuse(ErrConfig, "use Store.Transact, which acquires labels before the snapshot, or READ COMMITTED",
			"under %s the snapshot is older than the lock, and does not see what the last holder committed", isolation)
	}
	keys, args := "$2::bigint", []any{mark, key}
	if isPair {
		keys, args = "$2::integer, $3::integer", []any{mark, int32(key >> 32), int32(key)}
	}
	var locked bool
	if err := query(ctx, fmt.Sprintf(find, keys), args...).Scan(&locked); err != nil {
		return driverFailed(ctx, err)
	}
	if !locked {
		return noTransaction("each statement is a transaction by itself")
	}
	return nil
}

func driverFailed(ctx context.Context, cause error) error {
	err := refuse(ErrDatabase, "", "%v", cause)
	if ctx.Err() != nil {
		err.Status, cause = ErrInterrupted, ctx.Err()
	}
	err.cause = cause
	return err
}
