package holdfast

// #include "shim.h"
import "C"

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// writeValue makes a parameter: text, which both kinds of stores read, but for []byte.
func writeValue(arg any, to *C.hf_value, a *arena) error {
	if pointer := reflect.ValueOf(arg); pointer.Kind() == reflect.Pointer && pointer.IsNil() {
		return nil
	}
	if valuer, ok := arg.(driver.Valuer); ok {
		value, err := valuer.Value()
		if err != nil {
			return err
		}
		arg = value
	}
	switch value := arg.(type) {
	case nil:
		return nil
	case []byte:
		if value != nil {
			to.data, to.size, to.binary = a.add(C.CBytes(value)), C.size_t(len(value)), true
		}
		return nil
	case time.Time:
		to.data = unsafe.Pointer(a.text(value.Format(time.RFC3339Nano)))
		return nil
	}
	text := ""
	switch value := reflect.ValueOf(arg); value.Kind() {
	case reflect.String:
		text = value.String()
	case reflect.Bool:
		text = map[bool]string{false: "0", true: "1"}[value.Bool()]
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		text = strconv.FormatInt(value.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		text = strconv.FormatUint(value.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		text = strconv.FormatFloat(value.Float(), 'g', -1, value.Type().Bits())
	case reflect.Pointer:
		return writeValue(value.Elem().Interface(), to, a)
	default:
		return fmt.Errorf("a %T is not a value of SQL", arg)
	}
	to.data = unsafe.Pointer(a.text(text))
	return nil
}

// Rows are the rows of one statement, all of them in memory. They need not be closed.
type Rows struct {
	columns  []string
	values   [][]byte // row by row; nil is SQL's NULL
	affected int64
	next     int
}

func copyRows(rows *C.hf_rows) *Rows {
	columns, count := int(C.hf_rows_columns(rows)), int(C.hf_rows_count(rows))
	copied := &Rows{affected: int64(C.hf_rows_affected(rows)), columns: make([]string, columns)}
	for i := range copied.columns {
		copied.columns[i] = C.GoString(C.hf_rows_column(rows, C.size_t(i)))
	}
	if columns*count == 0 {
		return copied
	}
	var a arena
	defer a.free()
	total := columns * count
	pointers := (**C.char)(a.alloc(C.size_t(total) * C.size_t(unsafe.Sizeof(uintptr(0)))))
	lengths := (*C.size_t)(a.alloc(C.size_t(total) * C.sizeof_size_t))
	C.hfgo_values(rows, pointers, lengths)
	copied.values = make([][]byte, total)
	sizes := unsafe.Slice(lengths, total)
	for i, at := range unsafe.Slice(pointers, total) {
		if at != nil {
			copied.values[i] = append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(at)), int(sizes[i]))...)
		}
	}
	return copied
}

// Columns are the names of the columns.
func (r *Rows) Columns() []string { return r.columns }

// Len is the number of rows.
func (r *Rows) Len() int {
	if len(r.columns) == 0 {
		return 0
	}
	return len(r.values) / len(r.columns)
}

// Value is one value as the store has sent it, as text unless it was QueryBinary; nil is SQL's NULL.
func (r *Rows) Value(row, column int) []byte {
	if row < 0 || row >= r.Len() || column < 0 || column >= len(r.columns) {
		return nil
	}
	return r.values[row*len(r.columns)+column]
}

// Next steps to the next row, from before the first; false: there is none.
func (r *Rows) Next() bool {
	if r.next >= r.Len() {
		return false
	}
	r.next++
	return true
}

// Scan reads the row that Next has stepped to into pointers to string, []byte, bool, integers,
// floats, any, a pointer to one of these (nil for NULL), or a sql.Scanner.
func (r *Rows) Scan(to ...any) error {
	if r.next == 0 || len(to) != len(r.columns) {
		return refuse(ErrInvalid, "", "Scan of %d values, of %d columns, after Next", len(to), len(r.columns))
	}
	for i, target := range to {
		if err := scan(r.Value(r.next-1, i), target); err != nil {
			return refuse(ErrBadData, "", "column %s: %v", r.columns[i], err)
		}
	}
	return nil
}

// Row is the first row of a statement.
type Row struct {
	rows *Rows
	err  error
}

// Scan is that of Rows; it also returns the statement's error.
func (r *Row) Scan(to ...any) error {
	if r.err != nil {
		return r.err
	}
	if !r.rows.Next() {
		return sql.ErrNoRows
	}
	return r.rows.Scan(to...)
}

func scan(value []byte, to any) error {
	switch target := to.(type) {
	case sql.Scanner:
		if value == nil {
			return target.Scan(nil)
		}
		return target.Scan(append([]byte{}, value...))
	case *[]byte:
		*target = append([]byte(nil), value...)
		return nil
	case *any:
		*target = nil
		if value != nil {
			*target = string(value)
		}
		return nil
	}
	pointer := reflect.ValueOf(to)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() {
		return fmt.Errorf("cannot scan into a %T", to)
	}
	target := pointer.Elem()
	if target.Kind() == reflect.Pointer {
		if value == nil {
			target.Set(reflect.Zero(target.Type()))
			return nil
		}
		target.Set(reflect.New(target.Type().Elem()))
		return scan(value, target.Interface())
	}
	if value == nil {
		return fmt.Errorf("NULL does not fit in a %s", target.Type())
	}
	return parse(string(value), target)
}

func parse(text string, target reflect.Value) error {
	switch target.Kind() {
	case reflect.String:
		target.SetString(text)
	case reflect.Bool: // "t" of PostgreSQL, "1" of a local store
		value, err := strconv.ParseBool(text)
		target.SetBool(value)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		value, err := strconv.ParseInt(text, 10, target.Type().Bits())
		target.SetInt(value)
		return err
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		value, err := strconv.ParseUint(text, 10, target.Type().Bits())
		target.SetUint(value)
		return err
	case reflect.Float32, reflect.Float64:
		value, err := strconv.ParseFloat(text, target.Type().Bits())
		target.SetFloat(value)
		return err
	default:
		return fmt.Errorf("cannot scan into a %s", target.Type())
	}
	return nil
}
