// Package holdfast binds libholdfast: dependable advisory locks and serialised transactions on
// PostgreSQL, or on an embedded store with the same semantics.
//
//	store, err := holdfast.Open(ctx, "postgresql://app@db/shop")
//	defer store.Close()
//	lock, err := store.Lock(ctx, "nightly", holdfast.NoWait())
//	if errors.Is(err, holdfast.ErrNotAcquired) { … } // err names the holder
//	defer lock.Release()
//
// A context that ends ends the call: errors.Is then finds ErrInterrupted and the context's error.
//
// Goroutines are not threads, so every call is an owner of its own: the library's order rule and
// reentrancy apply only between calls that are given the same Owner. A call that waits keeps a
// thread of the process busy.
package holdfast

// #cgo pkg-config: holdfast
// #include "shim.h"
import "C"

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// needed is the oldest libholdfast that has every call of this package.
const needed = "0.1.0"

// Version is that of the libholdfast that is loaded.
func Version() string {
	return C.GoString(C.hf_version())
}

func isOlder(version, than string) bool {
	have, want := strings.Split(version, "."), strings.Split(than, ".")
	for i := range want {
		number := 0
		if i < len(have) {
			number, _ = strconv.Atoi(have[i])
		}
		if least, _ := strconv.Atoi(want[i]); number != least {
			return number < least
		}
	}
	return false
}

// Store is a connected store. All goroutines may use it at once.
type Store struct {
	c        *C.hf_store
	registry *Registry // the library reads it as long as the store lives
	name     string
	local    bool

	mu     sync.Mutex
	closed bool
	users  int // calls in progress and transactions, and one until Close: the last one frees
	locks  map[*Lock]struct{}

	losses   *os.File // readable when locks were lost
	watching chan struct{}
	logs     *os.File // where the library writes its messages
	spans    C.uintptr_t
}

// LogLevel is how much a message of the library matters.
type LogLevel int

const (
	LogDebug   = LogLevel(C.HF_LOG_DEBUG)
	LogInfo    = LogLevel(C.HF_LOG_INFO)
	LogWarning = LogLevel(C.HF_LOG_WARNING)
)

// Records says whether tokens, holders and events are recorded.
type Records int

const (
	RecordsAuto     = Records(C.HF_RECORDS_AUTO)     // when the schema is there
	RecordsOff      = Records(C.HF_RECORDS_OFF)      // plain locks: no write, no token
	RecordsRequired = Records(C.HF_RECORDS_REQUIRED) // Open fails with ErrNoSchema without the schema
)

type storeConfig struct {
	application                                      string
	records                                          Records
	pingInterval, pingDeadline, kill, connectTimeout time.Duration
	patience                                         time.Duration
	maxWaits, maxKeys, maxTransactions, machine      int
	sessionPool, environment                         bool
	registry                                         *Registry
	log                                              func(LogLevel, string)
	tellSpan                                         func(Span)
}

// StoreOption is an option of Open.
type StoreOption func(*storeConfig)

// WithApplication is the name that others are shown who wait or are refused.
func WithApplication(name string) StoreOption {
	return func(c *storeConfig) { c.application = name }
}

// WithRecords says whether to keep records; without it they are kept when the schema is there.
func WithRecords(records Records) StoreOption {
	return func(c *storeConfig) { c.records = records }
}

// WithPing probes a session that holds locks at each interval; no answer until deadline is a loss.
func WithPing(interval, deadline time.Duration) StoreOption {
	return func(c *storeConfig) { c.pingInterval, c.pingDeadline = interval, deadline }
}

// WithKillTime is how long the application needs to stop after a loss.
func WithKillTime(d time.Duration) StoreOption {
	return func(c *storeConfig) { c.kill = d }
}

// WithConnectTimeout is for all hosts of the URL together.
func WithConnectTimeout(d time.Duration) StoreOption {
	return func(c *storeConfig) { c.connectTimeout = d }
}

// WithLimits bounds the connections that wait or hold besides the shared one, the keys that are held
// at once, and the connections for transactions; 0 is the library's default.
func WithLimits(waits, keys, transactions int) StoreOption {
	return func(c *storeConfig) { c.maxWaits, c.maxKeys, c.maxTransactions = waits, keys, transactions }
}

// WithPatience says for how long a wait outlasts a server that is away: a minute without it, for
// ever if it is negative.
func WithPatience(d time.Duration) StoreOption {
	return func(c *storeConfig) { c.patience = d }
}

// WithSessionPool says that the pooler in between is in session mode, which only the caller can know.
func WithSessionPool() StoreOption {
	return func(c *storeConfig) { c.sessionPool = true }
}

// WithRegistry gives labels and names the keys of a registry, and checks its order.
func WithRegistry(r *Registry) StoreOption {
	return func(c *storeConfig) { c.registry = r }
}

// FromEnvironment finds what Open is not given as the holdfast command does: an empty url by
// HOLDFAST_URL, HOLDFAST_URL_FILE, DATABASE_URL, libpq's variables or else as a local folder, and the registry by
// HOLDFAST_REGISTRY or as locks.yaml in the working folder or above.
func FromEnvironment() StoreOption {
	return func(c *storeConfig) { c.environment = true }
}

// WithMachine is the number, 1 to 1023, in the ids that this process mints; else it is leased.
func WithMachine(number int) StoreOption {
	return func(c *storeConfig) { c.machine = number }
}

// WithLog is told the library's messages for people, in a goroutine of its own, one after the other.
// Messages that come faster than it returns are dropped.
func WithLog(log func(level LogLevel, message string)) StoreOption {
	return func(c *storeConfig) { c.log = log }
}

// Open connects to postgresql://…, a libpq conninfo string or local:/path/to/folder, and checks the
// store. The caller closes it.
func Open(ctx context.Context, url string, options ...StoreOption) (*Store, error) {
	if have := Version(); isOlder(have, needed) {
		return nil, refuse(ErrConfig, "install libholdfast "+needed+" or newer: `make install` in its"+
			" source, then build again", "libholdfast %s is loaded, %s is needed", have, needed)
	}
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	var config storeConfig
	for _, option := range options {
		option(&config)
	}
	return await(ctx, false, func() (*Store, error) { return open(url, &config) },
		func(s *Store) { s.Close() })
}

func open(url string, config *storeConfig) (*Store, error) {
	var a arena
	var e C.hf_error
	defer a.free()
	s := &Store{registry: config.registry, locks: map[*Lock]struct{}{}, users: 1}
	options := (*C.hf_store_options)(a.alloc(C.sizeof_hf_store_options))
	options.size = C.sizeof_hf_store_options
	options.url = a.optional(url)
	options.application = a.optional(config.application)
	options.records = C.hf_records(config.records)
	options.ping_interval_ms = settingMs(config.pingInterval)
	options.ping_deadline_ms = settingMs(config.pingDeadline)
	options.kill_ms = settingMs(config.kill)
	options.connect_timeout_ms = settingMs(config.connectTimeout)
	options.patience_ms = milliseconds(config.patience)
	options.max_waits = C.int(config.maxWaits)
	options.max_keys = C.int(config.maxKeys)
	options.max_transactions = C.int(config.maxTransactions)
	options.machine = C.int(config.machine)
	options.session_pool = C.bool(config.sessionPool)
	options.environment = C.bool(config.environment)
	options.dispatch = true
	if config.registry != nil && config.registry.store != nil {
		return nil, refuse(ErrInvalid, "read it with ReadRegistry", "the registry is another store's")
	}
	if config.registry != nil {
		options.registry = config.registry.c
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if config.log != nil {
		if err := s.readLogs(options, config.log); err != nil {
			return nil, err
		}
	}
	if config.tellSpan != nil {
		s.spans = keep(config.tellSpan)
		C.hfgo_trace(options, s.spans)
	}
	var c *C.hf_store
	if status := C.hf_store_open(options, &c, &e); status != C.HF_OK {
		s.endTelling()
		return nil, newError(status, &e)
	}
	s.c = c
	s.name, s.local = C.GoString(C.hf_store_name(s.c)), bool(C.hf_store_is_local(s.c))
	if err := s.watch(); err != nil {
		C.hf_store_close(s.c)
		s.endTelling()
		return nil, err
	}
	return s, nil
}

// watch lets one goroutine wait for losses, in Go's poller, and close the channels of lost locks.
func (s *Store) watch() error {
	fd, err := syscall.Dup(int(C.hf_store_fd(s.c)))
	if err != nil {
		return refuse(ErrSystem, "", "cannot duplicate a descriptor: %v", err)
	}
	syscall.CloseOnExec(fd)
	s.losses, s.watching = os.NewFile(uintptr(fd), "losses"), make(chan struct{})
	raw, err := s.losses.SyscallConn()
	if err != nil {
		return refuse(ErrSystem, "", "cannot watch a descriptor: %v", err)
	}
	go func() {
		defer close(s.watching)
		_ = raw.Read(func(uintptr) bool {
			C.hf_store_dispatch(s.c)
			return false // wait for more, until the file is closed
		})
	}()
	return nil
}

func (s *Store) readLogs(options *C.hf_store_options, log func(LogLevel, string)) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return refuse(ErrSystem, "", "cannot make a pipe: %v", err)
	}
	C.hfgo_log_to(options, C.int(writer.Fd()))
	if err := syscall.SetNonblock(int(writer.Fd()), true); err != nil {
		return refuse(ErrSystem, "", "cannot prepare a pipe: %v", err)
	}
	s.logs = writer
	go func() {
		defer reader.Close()
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			log(LogLevel(lines.Text()[0]-'0'), lines.Text()[1:])
		}
	}()
	return nil
}

// endTelling does not wait for the application's functions, which may be what closes the store.
func (s *Store) endTelling() {
	forget(s.spans)
	if s.logs != nil {
		s.logs.Close()
	}
}

// enter begins a call, which leave ends: the store is not freed in between.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return refuse(ErrInvalid, "", "the store is closed")
	}
	s.users++
	return nil
}

// hold is enter for what must still end when the store is closed already.
func (s *Store) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		return false
	}
	s.users++
	return true
}

func (s *Store) leave() {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if !last {
		return
	}
	s.freeLocks()
	s.losses.Close()
	<-s.watching
	C.hf_store_close(s.c)
	s.endTelling()
}

func (s *Store) freeLocks() {
	s.mu.Lock()
	locks := make([]*Lock, 0, len(s.locks))
	for lock := range s.locks {
		locks = append(locks, lock)
	}
	s.mu.Unlock()
	for _, lock := range locks {
		lock.free()
	}
}

// Close releases what is still held, ends every wait with ErrInterrupted and lets go of the store.
// It does not wait for other calls and transactions that are still running: their next step is
// refused, and the last of them to end frees what it used. Closing twice is ErrInvalid.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return refuse(ErrInvalid, "", "the store is closed")
	}
	C.hf_store_interrupt(s.c)
	s.freeLocks()
	s.leave()
	return nil
}

// Name is "postgresql://user@host:5432/db" or "local:/path", never with a password.
func (s *Store) Name() string { return s.name }

// IsLocal tells whether it is an embedded store.
func (s *Store) IsLocal() bool { return s.local }

// HasRecords tells whether there are tokens, holders and events.
func (s *Store) HasRecords() bool {
	if s.enter() != nil {
		return false
	}
	defer s.leave()
	return bool(C.hf_store_has_records(s.c))
}

// Owner says who asks, for the order rule, Reentrant and deadlocks: a task, in however many
// goroutines it runs.
type Owner struct {
	number int64
}

var lastOwner int64

// NewOwner returns an owner that nobody else has.
func NewOwner() Owner {
	return Owner{atomic.AddInt64(&lastOwner, 1)}
}

func (o Owner) orNew() C.int64_t {
	if o.number == 0 {
		o = NewOwner()
	}
	return C.int64_t(o.number)
}
