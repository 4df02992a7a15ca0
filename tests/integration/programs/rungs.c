#include "rungs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libpq-events.h>
#include <libpq-fe.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

/* ---- which one fails ------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static size_t left[KINDS]; /* 0: not armed */
static size_t more;        /* fail right after it */
static int system_error;
static bool has_failed;
static _Thread_local bool is_spared = true;
static const char *failed_name = "nothing";

void rungs_arm(rung_kind kind, size_t number, int error_number, size_t times)
{
    pthread_mutex_lock(&mutex);
    left[kind] = number;
    more = times - 1;
    system_error = error_number;
    has_failed = false;
    failed_name = "nothing";
    pthread_mutex_unlock(&mutex);
}

bool rungs_disarm(void)
{
    pthread_mutex_lock(&mutex);
    memset(left, 0, sizeof left);
    bool result = has_failed;
    pthread_mutex_unlock(&mutex);
    return result;
}

bool rungs_spare(bool spare)
{
    bool before = is_spared;
    is_spared = spare;
    return before;
}

const char *rungs_failed(void)
{
    return failed_name;
}

static bool fails(rung_kind kind, const char *name)
{
    pthread_mutex_lock(&mutex);
    bool result = left[kind] > 0 && --left[kind] == 0;
    if (result) {
        failed_name = has_failed ? failed_name : name;
        has_failed = true;
        left[kind] = more > 0 ? 1 : 0;
        more -= left[kind];
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

/* ---- allocations of the library -------------------------------------------------------------- */

enum { PLACES = 1 << 16 };
static struct block {
    void *address;
    const void *caller;
    size_t number;
} blocks[PLACES]; /* open addressing */
static size_t live, allocated;
static uintptr_t code_base, code_from, code_to;

/* The first is the program, and the library is in it. */
static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            code_base = info->dlpi_addr;
            code_from = code_base + info->dlpi_phdr[i].p_vaddr;
            code_to = code_from + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

__attribute__((constructor)) static void look_for_code(void)
{
    dl_iterate_phdr(find_code, NULL);
}

/* Is it a call of the library that may fail? */
static bool counts(const void *caller)
{
    return !is_spared && (uintptr_t)caller >= code_from && (uintptr_t)caller < code_to;
}

static size_t home_of(const void *block)
{
    return (size_t)(((uintptr_t)block >> 4) * 11400714819323198485ull >> 48) % PLACES;
}

static void remember(void *block, const void *caller)
{
    pthread_mutex_lock(&mutex);
    size_t at = home_of(block);
    while (blocks[at].address)
        at = (at + 1) % PLACES;
    blocks[at] = (struct block){block, caller, ++allocated};
    if (++live > PLACES / 2)
        abort();
    pthread_mutex_unlock(&mutex);
}

static void close_hole(size_t hole)
{
    for (size_t at = (hole + 1) % PLACES; blocks[at].address; at = (at + 1) % PLACES) {
        size_t home = home_of(blocks[at].address);
        if ((at - home) % PLACES >= (at - hole) % PLACES) {
            blocks[hole] = blocks[at];
            hole = at;
        }
    }
    blocks[hole].address = NULL;
}

/* Whoever frees it: libraries free what others have allocated, too. */
static void forget(const void *block)
{
    pthread_mutex_lock(&mutex);
    size_t at = home_of(block);
    while (blocks[at].address && blocks[at].address != block)
        at = (at + 1) % PLACES;
    if (blocks[at].address) {
        live--;
        close_hole(at);
    }
    pthread_mutex_unlock(&mutex);
}

size_t rungs_live(void)
{
    pthread_mutex_lock(&mutex);
    size_t result = live;
    pthread_mutex_unlock(&mutex);
    return result;
}

size_t rungs_allocated(void)
{
    return allocated;
}

void rungs_print_since(size_t number)
{
    for (size_t at = 0; at < PLACES; at++)
        if (blocks[at].address && blocks[at].number > number)
            fprintf(stderr, "block %zu, allocated at ladder+0x%zx\n", blocks[at].number,
                    (uintptr_t)blocks[at].caller - code_base);
}

static void *kept(void *block, const void *caller)
{
    if (block)
        remember(block, caller);
    return block;
}

void *malloc(size_t size)
{
    const void *caller = __builtin_return_address(0);
    if (!counts(caller))
        return __libc_malloc(size);
    return fails(MEMORY, "malloc") ? NULL : kept(__libc_malloc(size), caller);
}

void *calloc(size_t count, size_t size)
{
    const void *caller = __builtin_return_address(0);
    if (!counts(caller))
        return __libc_calloc(count, size);
    return fails(MEMORY, "calloc") ? NULL : kept(__libc_calloc(count, size), caller);
}

static void *resize(void *block, size_t size, const void *caller)
{
    if (!counts(caller))
        return __libc_realloc(block, size);
    if (fails(MEMORY, "realloc"))
        return NULL;
    if (block)
        forget(block);
    return kept(__libc_realloc(block, size), caller);
}

void *realloc(void *block, size_t size)
{
    return resize(block, size, __builtin_return_address(0));
}

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return resize(block, bytes, __builtin_return_address(0));
}

void free(void *block)
{
    if (block)
        forget(block);
    __libc_free(block);
}

static char *copy(const char *text, size_t size, const void *caller)
{
    bool may_fail = counts(caller);
    char *block = may_fail && fails(MEMORY, "strdup") ? NULL : __libc_malloc(size + 1);
    if (!block)
        return NULL;
    memcpy(block, text, size);
    block[size] = '\0';
    return may_fail ? kept(block, caller) : block;
}

char *strdup(const char *text)
{
    return copy(text, strlen(text), __builtin_return_address(0));
}

char *strndup(const char *text, size_t most)
{
    return copy(text, strnlen(text, most), __builtin_return_address(0));
}

int vasprintf(char **text, const char *format, va_list args)
{
    const void *caller = __builtin_return_address(0);
    bool may_fail = counts(caller);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = size < 0 || (may_fail && fails(MEMORY, "vasprintf")) ? NULL
                                                                 : __libc_malloc((size_t)size + 1);
    if (!*text)
        return -1;
    if (may_fail)
        remember(*text, caller);
    return vsnprintf(*text, (size_t)size + 1, format, args);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct start {
    void *(*run)(void *arg);
    void *arg;
    bool is_spared;
};

static void *start_thread(void *arg)
{
    struct start start = *(struct start *)arg;
    __libc_free(arg);
    is_spared = start.is_spared;
    return start.run(start.arg);
}

/* A thread is spared if the one that made it is. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        *(void **)(&real) = dlsym(RTLD_NEXT, "pthread_create");
    if (counts(__builtin_return_address(0)) && fails(SYSTEM, "pthread_create"))
        return EAGAIN;
    struct start *start = __libc_malloc(sizeof *start);
    *start = (struct start){run, arg, is_spared};
    int code = real(thread, attributes, start_thread, start);
    if (code != 0)
        __libc_free(start);
    return code;
}

/* ---- calls of libpq and SQLite --------------------------------------------------------------- */

/*
 * A function that gives FAILURE when its number is called, and is the real one otherwise, also for
 * SQLite itself, which calls some of its own.
 */
#define STAND_IN(KIND, TYPE, NAME, SYMBOL, PARAMETERS, ARGUMENTS, FAILURE)                         \
    TYPE NAME PARAMETERS                                                                           \
    {                                                                                              \
        static TYPE(*real) PARAMETERS;                                                             \
        if (!real)                                                                                 \
            *(void **)(&real) = dlsym(RTLD_NEXT, SYMBOL);                                          \
        bool may_fail = counts(__builtin_return_address(0));                                       \
        return may_fail && fails(KIND, #NAME) ? (FAILURE) : real ARGUMENTS;                        \
    }
#define CALL(TYPE, NAME, PARAMETERS, ARGUMENTS, FAILURE)                                           \
    STAND_IN(CALLS, TYPE, NAME, #NAME, PARAMETERS, ARGUMENTS, FAILURE)

CALL(PGconn *, PQconnectdbParams, (const char *const *names, const char *const *values, int expand),
     (names, values, expand), NULL)
CALL(PQconninfoOption *, PQconninfo, (PGconn * conn), (conn), NULL)
CALL(PQconninfoOption *, PQconninfoParse, (const char *text, char **message), (text, message), NULL)
CALL(PQconninfoOption *, PQconndefaults, (void), (), NULL)
CALL(PGcancel *, PQgetCancel, (PGconn * conn), (conn), NULL)
CALL(int, PQcancel, (PGcancel * cancel, char *text, int size), (cancel, text, size), 0)
CALL(PGresult *, PQexecParams,
     (PGconn * conn, const char *sql, int count, const Oid *types, const char *const *values,
      const int *lengths, const int *formats, int format),
     (conn, sql, count, types, values, lengths, formats, format), NULL)
CALL(int, PQsendQuery, (PGconn * conn, const char *sql), (conn, sql), 0)
CALL(int, PQsendQueryParams,
     (PGconn * conn, const char *sql, int count, const Oid *types, const char *const *values,
      const int *lengths, const int *formats, int format),
     (conn, sql, count, types, values, lengths, formats, format), 0)
CALL(int, PQsendPrepare,
     (PGconn * conn, const char *name, const char *sql, int count, const Oid *types),
     (conn, name, sql, count, types), 0)
CALL(int, PQsendQueryPrepared,
     (PGconn * conn, const char *name, int count, const char *const *values, const int *lengths,
      const int *formats, int format),
     (conn, name, count, values, lengths, formats, format), 0)
CALL(int, PQconsumeInput, (PGconn * conn), (conn), 0)
CALL(int, PQflush, (PGconn * conn), (conn), -1)
CALL(int, PQsetnonblocking, (PGconn * conn, int on), (conn, on), -1)
CALL(int, PQenterPipelineMode, (PGconn * conn), (conn), 0)
CALL(int, PQexitPipelineMode, (PGconn * conn), (conn), 0)
CALL(int, PQpipelineSync, (PGconn * conn), (conn), 0)
CALL(int, PQregisterEventProc, (PGconn * conn, PGEventProc proc, const char *name, void *arg),
     (conn, proc, name, arg), 0)

CALL(int, sqlite3_open_v2, (const char *name, sqlite3 **db, int flags, const char *vfs),
     (name, db, flags, vfs), (*db = NULL, SQLITE_NOMEM))
CALL(int, sqlite3_prepare_v3,
     (sqlite3 * db, const char *sql, int size, unsigned flags, sqlite3_stmt **stmt,
      const char **tail),
     (db, sql, size, flags, stmt, tail), (*stmt = NULL, SQLITE_NOMEM))
CALL(int, sqlite3_step, (sqlite3_stmt * stmt), (stmt), SQLITE_IOERR)
CALL(int, sqlite3_exec,
     (sqlite3 * db, const char *sql, int (*fn)(void *, int, char **, char **), void *arg,
      char **message),
     (db, sql, fn, arg, message), SQLITE_IOERR)
CALL(int, sqlite3_bind_text,
     (sqlite3_stmt * stmt, int at, const char *text, int size, void (*end)(void *)),
     (stmt, at, text, size, end), SQLITE_NOMEM)
CALL(int, sqlite3_bind_text64,
     (sqlite3_stmt * stmt, int at, const char *text, sqlite3_uint64 size, void (*end)(void *),
      unsigned char encoding),
     (stmt, at, text, size, end, encoding), SQLITE_NOMEM)
CALL(int, sqlite3_bind_int64, (sqlite3_stmt * stmt, int at, sqlite3_int64 value), (stmt, at, value),
     SQLITE_NOMEM)

/* ---- calls of the system --------------------------------------------------------------------- */

/* SYMBOL is what the name stands for with 64-bit offsets, which the library is built with. */
#define SYSTEM_CALL(NAME, SYMBOL, PARAMETERS, ARGUMENTS)                                           \
    STAND_IN(SYSTEM, int, NAME, SYMBOL, PARAMETERS, ARGUMENTS, (errno = system_error, -1))

SYSTEM_CALL(access, "access", (const char *path, int mode), (path, mode))
SYSTEM_CALL(eventfd, "eventfd", (unsigned count, int flags), (count, flags))
SYSTEM_CALL(fstat, "fstat64", (int fd, struct stat *found), (fd, found))
SYSTEM_CALL(gethostname, "gethostname", (char *name, size_t size), (name, size))
SYSTEM_CALL(getrlimit, "getrlimit64", (__rlimit_resource_t what, struct rlimit *limit),
            (what, limit))
SYSTEM_CALL(getsockname, "getsockname", (int fd, __SOCKADDR_ARG address, socklen_t *size),
            (fd, address, size))
SYSTEM_CALL(lstat, "lstat64", (const char *path, struct stat *found), (path, found))
SYSTEM_CALL(mkdir, "mkdir", (const char *path, mode_t mode), (path, mode))
SYSTEM_CALL(poll, "poll", (struct pollfd * items, nfds_t count, int ms), (items, count, ms))
SYSTEM_CALL(stat, "stat64", (const char *path, struct stat *found), (path, found))
SYSTEM_CALL(statfs, "statfs64", (const char *path, struct statfs *found), (path, found))
SYSTEM_CALL(statvfs, "statvfs64", (const char *path, struct statvfs *found), (path, found))
SYSTEM_CALL(unlink, "unlink", (const char *path), (path))
STAND_IN(SYSTEM, ssize_t, getrandom, "getrandom", (void *data, size_t size, unsigned flags),
         (data, size, flags), (errno = system_error, -1))
STAND_IN(SYSTEM, FILE *, fopen, "fopen64", (const char *path, const char *mode), (path, mode),
         (errno = system_error, NULL))

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list args;
    va_start(args, flags);
    unsigned mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
    va_end(args);
    if (!real)
        *(void **)(&real) = dlsym(RTLD_NEXT, "open64");
    if (counts(__builtin_return_address(0)) && fails(SYSTEM, "open")) {
        errno = system_error;
        return -1;
    }
    return real(path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
    static int (*real)(int, int, ...);
    va_list args;
    va_start(args, command);
    void *about = va_arg(args, void *);
    va_end(args);
    if (!real)
        *(void **)(&real) = dlsym(RTLD_NEXT, "fcntl64");
    if (counts(__builtin_return_address(0)) && fails(SYSTEM, "fcntl")) {
        errno = system_error;
        return -1;
    }
    return real(fd, command, about);
}
