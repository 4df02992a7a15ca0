package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"time"
	"unsafe"
)

// TableName names a table that programs share. No Database is "default"; Cluster may be "".
type TableName struct {
	Cluster, Database, Table string
}

// ParseTableName reads "table", "database.table" or "cluster/database.table".
func ParseTableName(text string) (TableName, error) {
	var a arena
	var name C.hf_table_name
	var memory *C.char
	var e C.hf_error
	defer a.free()
	given := a.text(text)
	if err := a.check(); err != nil {
		return TableName{}, err
	}
	if status := C.hf_table_name_parse(given, &name, &memory, &e); status != C.HF_OK {
		return TableName{}, newError(status, &e)
	}
	defer C.free(unsafe.Pointer(memory))
	return readTableName(&name), nil
}

func readTableName(name *C.hf_table_name) TableName {
	return TableName{goText(name.cluster), goText(name.database), goText(name.table)}
}

func goText(text *C.char) string {
	if text == nil {
		return ""
	}
	return C.GoString(text)
}

func (n TableName) write(a *arena) *C.hf_table_name {
	name := (*C.hf_table_name)(a.alloc(C.sizeof_hf_table_name))
	name.cluster, name.database, name.table = a.optional(n.Cluster), a.optional(n.Database), a.text(n.Table)
	return name
}

// String is "cluster/database.table" or "database.table".
func (n TableName) String() string {
	database := n.Database
	if database == "" {
		database = "default"
	}
	if n.Cluster != "" {
		return n.Cluster + "/" + database + "." + n.Table
	}
	return database + "." + n.Table
}

// onTable runs a call about a table apart from the context's goroutine.
func onTable[T any](ctx context.Context, s *Store, changes bool, name TableName,
	call func(name *C.hf_table_name, a *arena, e *C.hf_error) (T, C.hf_status)) (T, error) {
	return apart(ctx, s, changes, func() (T, error) {
		var a arena
		var e C.hf_error
		var none T
		defer a.free()
		table := name.write(&a)
		if err := a.check(); err != nil {
			return none, err
		}
		value, status := call(table, &a, &e)
		if err := a.check(); err != nil {
			return none, err
		}
		if status != C.HF_OK {
			return none, newError(status, &e)
		}
		return value, nil
	})
}

// LockTable acquires the lock on the table's id, and registers the table if it is not. While it is
// held the id stays the table's.
func (s *Store) LockTable(ctx context.Context, name TableName, options ...LockOption) (*Lock, error) {
	return s.acquire(ctx, newLockConfig(options),
		func(spec *C.hf_lock_spec, a *arena, lock **C.hf_lock, e *C.hf_error) (C.hf_status, error) {
			table := name.write(a)
			if err := a.check(); err != nil {
				return 0, err
			}
			return C.hf_table_lock(s.c, table, spec, lock, e), nil
		})
}

// RegisterTable finds the table's id, or mints one: however many register it at once, all get the
// same id.
func (s *Store) RegisterTable(ctx context.Context, name TableName) (id int64, created bool, err error) {
	type minted struct {
		id      C.int64_t
		created C.bool
	}
	got, err := onTable(ctx, s, true, name, func(table *C.hf_table_name, _ *arena, e *C.hf_error) (m minted, status C.hf_status) {
		status = C.hf_table_register(s.c, table, &m.id, &m.created, e)
		return m, status
	})
	return int64(got.id), bool(got.created), err
}

// FindTable returns the table's id, or 0 when it is not registered.
func (s *Store) FindTable(ctx context.Context, name TableName) (int64, error) {
	return onTable(ctx, s, false, name, func(table *C.hf_table_name, _ *arena, e *C.hf_error) (int64, C.hf_status) {
		var id C.int64_t
		status := C.hf_table_find(s.c, table, &id, e)
		return int64(id), status
	})
}

// ReferTable says that a context owns the table, too, and returns the table's id.
func (s *Store) ReferTable(ctx context.Context, name TableName, context string) (int64, error) {
	return onTable(ctx, s, true, name, func(table *C.hf_table_name, a *arena, e *C.hf_error) (int64, C.hf_status) {
		var id C.int64_t
		text := a.text(context)
		if a.hasNul {
			return 0, C.HF_INVALID
		}
		status := C.hf_table_ref(s.c, table, text, &id, e)
		return int64(id), status
	})
}

// UnreferTable takes that back. Removing the last reference retires the table's id, under the
// table's lock, for which it waits (negative: for ever).
func (s *Store) UnreferTable(ctx context.Context, name TableName, context string, wait time.Duration) (retired bool, err error) {
	return onTable(ctx, s, true, name, func(table *C.hf_table_name, a *arena, e *C.hf_error) (bool, C.hf_status) {
		var retired C.bool
		text := a.text(context)
		if a.hasNul {
			return false, C.HF_INVALID
		}
		status := C.hf_table_unref(s.c, table, text, milliseconds(wait), &retired, e)
		return bool(retired), status
	})
}

// DropTable retires the table's id. ErrInvalid: there are references, and theirsToo is false.
func (s *Store) DropTable(ctx context.Context, name TableName, theirsToo bool, wait time.Duration) error {
	_, err := onTable(ctx, s, true, name, func(table *C.hf_table_name, _ *arena, e *C.hf_error) (bool, C.hf_status) {
		return true, C.hf_table_drop(s.c, table, C.bool(theirsToo), milliseconds(wait), e)
	})
	return err
}

// TableContexts are the contexts that refer to the table, by name.
func (s *Store) TableContexts(ctx context.Context, name TableName) ([]string, error) {
	return onTable(ctx, s, false, name, func(table *C.hf_table_name, _ *arena, e *C.hf_error) ([]string, C.hf_status) {
		list := &[]string{}
		id := keep(list)
		defer forget(id)
		status := C.hfgo_contexts(s.c, table, id, e)
		return *list, status
	})
}

// TableView is one registered table.
type TableView struct {
	Name       TableName
	ID         int64
	Created    time.Time
	Dropped    time.Time // zero: it is live
	References int64
}

// Tables are the registered tables by name, with retired ids too if asked for.
func (s *Store) Tables(ctx context.Context, retiredToo bool) ([]TableView, error) {
	return apart(ctx, s, false, func() ([]TableView, error) {
		var list *C.hf_table_list
		var e C.hf_error
		if status := C.hf_table_list_read(s.c, nil, C.bool(retiredToo), &list, &e); status != C.HF_OK {
			return nil, newError(status, &e)
		}
		defer C.hf_table_list_free(list)
		views := make([]TableView, int(C.hf_table_list_count(list)))
		for i := range views {
			view := C.hf_table_list_at(list, C.size_t(i))
			views[i] = TableView{Name: readTableName(&view.name), ID: int64(view.id),
				Created: time.UnixMilli(int64(view.created_ms)), References: int64(view.references)}
			if view.dropped_ms != 0 {
				views[i].Dropped = time.UnixMilli(int64(view.dropped_ms))
			}
		}
		return views, nil
	})
}
