package holdfast

// #include "shim.h"
import "C"

import "unsafe"

// Derivation is how a label becomes a key. The zero value is SHA256.
type Derivation int

const (
	SHA256                = Derivation(C.HF_SHA256)
	FNV1a64               = Derivation(C.HF_FNV1A64)
	FNV1a32               = Derivation(C.HF_FNV1A32)
	FNV1a32JS             = Derivation(C.HF_FNV1A32_JS)
	Hashtext              = Derivation(C.HF_HASHTEXT)
	HashtextExtended      = Derivation(C.HF_HASHTEXTEXTENDED)
	Fixed                 = Derivation(C.HF_FIXED)
	Minted                = Derivation(C.HF_MINTED)
	CRC32                 = Derivation(C.HF_CRC32)
	CRC32Sqlx             = Derivation(C.HF_CRC32_SQLX)
	MD5                   = Derivation(C.HF_MD5)
	JavaHashCode          = Derivation(C.HF_JAVA_HASHCODE)
	WithAdvisoryLock      = Derivation(C.HF_WITH_ADVISORY_LOCK)
	DistributedLockASCII  = Derivation(C.HF_DISTRIBUTEDLOCK_ASCII)
	DistributedLockHashed = Derivation(C.HF_DISTRIBUTEDLOCK_HASH)
)

// String is the derivation's name, as registries and the command have it.
func (d Derivation) String() string {
	if name := C.hf_derivation_name(C.hf_derivation(d)); name != nil {
		return C.GoString(name)
	}
	return "unknown"
}

// IsPair tells whether the derivation makes two int4 of a label, not one bigint.
func (d Derivation) IsPair() bool {
	return C.hf_derivation_space(C.hf_derivation(d)) == C.HF_PAIR
}

// ParseDerivation finds a derivation by its name.
func ParseDerivation(name string) (Derivation, error) {
	var a arena
	var found C.hf_derivation
	var e C.hf_error
	defer a.free()
	text := a.text(name)
	if err := a.check(); err != nil {
		return 0, err
	}
	if status := C.hf_derivation_parse(text, &found, &e); status != C.HF_OK {
		return 0, newError(status, &e)
	}
	return Derivation(found), nil
}

// DeriveKey computes the key of a label. Where d.IsPair, the first int4 is its high half.
func DeriveKey(d Derivation, label string) (int64, error) {
	var a arena
	var key C.int64_t
	var e C.hf_error
	defer a.free()
	text := a.add(C.CBytes([]byte(label + "\x00")))
	status := C.hf_key_derive(C.hf_derivation(d), text, C.size_t(len(label)), &key, &e)
	if status != C.HF_OK {
		return 0, newError(status, &e)
	}
	return int64(key), nil
}

// SplitKey tells how pg_locks shows a bigint key.
func SplitKey(key int64) (classid, objid uint32) {
	return uint32(uint64(key) >> 32), uint32(uint64(key))
}

// JoinKey is the other way round.
func JoinKey(classid, objid uint32) int64 {
	return int64(uint64(classid)<<32 | uint64(objid))
}

// Target is what to lock: a label under a derivation, a number, or two int4.
type Target struct {
	label      string
	derivation Derivation
	isPair     bool
	key        int64
	pair       [2]int32
}

// Label is a label under the derivation of the store's registry, or else under SHA256.
func Label(label string) Target {
	return Target{label: label}
}

// LabelAs is for labels that other programs lock by a key of their own, such as Hashtext.
func LabelAs(label string, how Derivation) Target {
	return Target{label: label, derivation: how}
}

// Labels makes one target of each label.
func Labels(labels ...string) []Target {
	targets := make([]Target, len(labels))
	for i, label := range labels {
		targets[i] = Label(label)
	}
	return targets
}

// Key is a bigint key.
func Key(key int64) Target {
	return Target{derivation: Fixed, key: key}
}

// Pair is a key of two int4.
func Pair(first, second int32) Target {
	return Target{isPair: true, pair: [2]int32{first, second}}
}

func (t Target) write(to *C.hf_target, a *arena) {
	to.derivation = C.hf_derivation(t.derivation)
	to.key = C.int64_t(t.key)
	if t.isPair {
		to.space = C.HF_PAIR
		to.pair[0], to.pair[1] = C.int32_t(t.pair[0]), C.int32_t(t.pair[1])
	} else if t.derivation != Fixed {
		to.label = (*C.char)(a.add(C.CBytes([]byte(t.label + "\x00"))))
		to.label_size = C.size_t(len(t.label))
	}
}

func writeTargets(targets []Target, a *arena) (*C.hf_target, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	first := (*C.hf_target)(a.alloc(C.size_t(len(targets)) * C.sizeof_hf_target))
	to := unsafe.Slice(first, len(targets))
	for i, target := range targets {
		if target.derivation == Fixed && target.label != "" {
			return nil, refuse(ErrInvalid, "use Key", "%q is a label, not a number", target.label)
		}
		target.write(&to[i], a)
	}
	return first, nil
}
