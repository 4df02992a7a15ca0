package holdfast

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Registry is a locks.yaml that was read: it names every lock.
type Registry struct {
	Path  string
	c     *C.hf_registry
	store *Store // that has found it, and owns it; nil: nobody
}

// Registry is the one that the store uses, or nil.
func (s *Store) Registry() *Registry {
	if s.registry != nil || s.enter() != nil {
		return s.registry
	}
	defer s.leave()
	c := C.hf_store_registry(s.c)
	if c == nil {
		return nil
	}
	return &Registry{C.GoString(C.hf_registry_path(c)), c, s}
}

// hold keeps the registry in memory until leave.
func (r *Registry) hold() error {
	if r.store == nil {
		return nil
	}
	return r.store.enter()
}

func (r *Registry) leave() {
	if r.store != nil {
		r.store.leave()
	}
	runtime.KeepAlive(r)
}

// ReadRegistry reads and checks the file; ErrConfig names the first fault.
func ReadRegistry(path string) (*Registry, error) {
	var a arena
	var e C.hf_error
	defer a.free()
	text := a.text(path)
	if err := a.check(); err != nil {
		return nil, err
	}
	var c *C.hf_registry
	if status := C.hf_registry_read(text, &c, &e); status != C.HF_OK {
		return nil, newError(status, &e)
	}
	registry := &Registry{Path: C.GoString(C.hf_registry_path(c)), c: c}
	runtime.SetFinalizer(registry, func(r *Registry) { C.hf_registry_free(r.c) }) // memory alone
	return registry, nil
}

// RegistryEntry is one lock of the registry; strings are "" where the file says nothing.
type RegistryEntry struct {
	Name, Pattern                             string
	Derivation                                Derivation
	IsPair                                    bool
	Key                                       int64
	Pair                                      [2]int32
	Transaction                               bool // it is acquired for a transaction
	Shared                                    bool
	HasOrder                                  bool
	Order                                     int64
	Expected                                  int64
	Scope, Component, Purpose, Owner, Runbook string
}

// Entries are all locks of the registry; none when the store that has found it is closed.
func (r *Registry) Entries() []RegistryEntry {
	if r.hold() != nil {
		return nil
	}
	defer r.leave()
	entries := make([]RegistryEntry, int(C.hf_registry_count(r.c)))
	for i := range entries {
		entry := C.hf_registry_at(r.c, C.size_t(i))
		entries[i] = RegistryEntry{
			Name:        goText(entry.name),
			Pattern:     goText(entry.pattern),
			Derivation:  Derivation(entry.derivation),
			IsPair:      entry.space == C.HF_PAIR,
			Key:         int64(entry.key),
			Pair:        [2]int32{int32(entry.pair[0]), int32(entry.pair[1])},
			Transaction: entry.lifetime == C.HF_TRANSACTION,
			Shared:      entry.mode == C.HF_SHARED,
			HasOrder:    bool(entry.has_order),
			Order:       int64(entry.order),
			Expected:    int64(entry.expected),
			Scope:       goText(entry.scope),
			Component:   goText(entry.component),
			Purpose:     goText(entry.purpose),
			Owner:       goText(entry.owner),
			Runbook:     goText(entry.runbook),
		}
	}
	return entries
}

// Fill is the label of a named pattern with its placeholders filled.
func (r *Registry) Fill(name string, values map[string]string) (string, error) {
	var a arena
	var e C.hf_error
	var label *C.char
	defer a.free()
	if err := r.hold(); err != nil {
		return "", err
	}
	defer r.leave()
	text := a.text(name)
	given := (**C.char)(a.alloc(C.size_t(len(values)+1) * C.size_t(unsafe.Sizeof(uintptr(0)))))
	pairs, at := unsafe.Slice(given, len(values)+1), 0
	for key, value := range values {
		pairs[at] = a.text(key + "=" + value)
		at++
	}
	if err := a.check(); err != nil {
		return "", err
	}
	entry := C.hf_registry_find(r.c, text)
	if entry == nil {
		return "", refuse(ErrInvalid, "", "%s has no lock named %q", r.Path, name)
	}
	if status := C.hf_registry_fill(entry, given, C.size_t(len(values)), &label, &e); status != C.HF_OK {
		return "", newError(status, &e)
	}
	defer C.free(unsafe.Pointer(label))
	return C.GoString(label), nil
}
