package holdfast_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast"
)

// The suite runs on one store: HOLDFAST_TEST_URL, and for what only a superuser may do on its server
// HOLDFAST_TEST_ADMIN_URL. HOLDFAST_COMMAND is the command that is built with the library.

var background = context.Background()

func testURL(t testing.TB) string {
	url := os.Getenv("HOLDFAST_TEST_URL")
	if url == "" {
		t.Fatal("HOLDFAST_TEST_URL is not set: see tests/integration/bindings")
	}
	return url
}

func open(t testing.TB, options ...holdfast.StoreOption) *holdfast.Store {
	t.Helper()
	store, err := holdfast.Open(background, testURL(t), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// patience is for what must come; nothing waits for so long.
const patience = 30 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(background, patience)
	t.Cleanup(cancel)
	return ctx
}

func await(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, err error, wanted ...error) {
	t.Helper()
	for _, want := range wanted {
		if !errors.Is(err, want) {
			t.Fatalf("%v (%T), wanted %v", err, err, want)
		}
	}
}

// label is one that no other test uses.
func label(t testing.TB, of string) string { return of + ":" + t.Name() }

func acquire(t testing.TB, store *holdfast.Store, label string, options ...holdfast.LockOption) *holdfast.Lock {
	t.Helper()
	lock, err := store.Lock(within(t), label, options...)
	must(t, err)
	return lock
}

func lockRefused(t testing.TB, store *holdfast.Store, label string, options ...holdfast.LockOption) error {
	t.Helper()
	lock, err := store.Lock(within(t), label, options...)
	if err == nil {
		t.Fatalf("%s was acquired: %v", label, lock.Release())
	}
	return err
}

// waits returns an option and the channel that is closed when the call begins to wait.
func waits() (holdfast.LockOption, <-chan struct{}) {
	begun := make(chan struct{})
	return holdfast.OnWait(func(error) { close(begun) }), begun
}

// command runs `holdfast` on the store of the suite.
func command(t testing.TB, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("HOLDFAST_COMMAND"), args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+testURL(t))
	cmd.Dir = t.TempDir()
	return cmd
}

// holder is another process that holds a lock.
type holder struct {
	stdin io.Closer
	cmd   *exec.Cmd
}

func holdElsewhere(t testing.TB, label string) *holder {
	t.Helper()
	cmd := command(t, "run", "--unregistered", label, "--", "sh", "-c", "echo held; exec cat")
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	h := &holder{stdin, cmd}
	t.Cleanup(func() { _ = h.release() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "held\n" {
		t.Fatalf("the command does not hold %s: %q, %v", label, line, err)
	}
	return h
}

func (h *holder) release() error {
	_ = h.stdin.Close()
	return h.cmd.Wait()
}

// lose takes a lock from its holder by other means than the library's.
func lose(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if url := testURL(t); strings.HasPrefix(url, "local:") {
		files, err := filepath.Glob(filepath.Join(url[len("local:"):], "locks", "*"))
		must(t, err)
		for _, file := range files {
			must(t, os.Remove(file))
		}
		return
	}
	classid, objid := holdfast.SplitKey(lock.Key())
	admin(t, fmt.Sprintf("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted"+
		" and objsubid = 1 and classid::bigint = %d and objid::bigint = %d and database ="+
		" (select oid from pg_database where datname = current_database())", classid, objid))
}

// admin runs a statement as a superuser.
func admin(t testing.TB, sql string) {
	t.Helper()
	store, err := holdfast.Open(background, os.Getenv("HOLDFAST_TEST_ADMIN_URL"),
		holdfast.WithApplication("admin"), holdfast.WithRecords(holdfast.RecordsOff))
	must(t, err)
	defer store.Close()
	must(t, store.Transact(within(t), nil, func(tx *holdfast.Tx) error {
		_, err := tx.Exec(sql)
		return err
	}))
}
