/* What `holdfast doctor` says about a local store. */
#include "lib/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Not in linux/magic.h. */
#define CIFS_MAGIC 0xFF534D42L
#define VBOXSF_MAGIC 0x786f4256L

typedef struct examination {
    hf__local *local;
    hf_finding_fn *report;
    void *arg;
} examination;

static void tell(const examination *exam, hf_level level, const char *topic, const char *remedy,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

static void tell(const examination *exam, hf_level level, const char *topic, const char *remedy,
                 const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    exam->report(exam->arg, level, topic, text, remedy);
}

static void tell_error(const examination *exam, const char *topic, const hf_error *why)
{
    tell(exam, HF_LEVEL_PROBLEM, topic, why->hint, "%s", why->message);
}

static void examine_folder(const examination *exam)
{
    hf_error why;

    if (hf__local_make_folders(exam->local, &why) == HF_OK)
        tell(exam, HF_LEVEL_OK, "store", "", "%s is there and may be written to",
             exam->local->folder);
    else
        tell_error(exam, "store", &why);
}

typedef struct filesystem {
    long type;
    const char *name;
    hf_level level;
} filesystem;

/* On these, other machines may not see a lock, or a server may forget it. */
static const filesystem filesystems[] = {
    {NFS_SUPER_MAGIC, "NFS", HF_LEVEL_PROBLEM},
    {SMB_SUPER_MAGIC, "SMB", HF_LEVEL_PROBLEM},
    {SMB2_SUPER_MAGIC, "SMB", HF_LEVEL_PROBLEM},
    {CIFS_MAGIC, "CIFS", HF_LEVEL_PROBLEM},
    {AFS_SUPER_MAGIC, "AFS", HF_LEVEL_PROBLEM},
    {CEPH_SUPER_MAGIC, "Ceph", HF_LEVEL_PROBLEM},
    {V9FS_MAGIC, "9p", HF_LEVEL_WARNING},
    {FUSE_SUPER_MAGIC, "FUSE", HF_LEVEL_WARNING},
    {VBOXSF_MAGIC, "a VirtualBox folder", HF_LEVEL_WARNING},
    {OVERLAYFS_SUPER_MAGIC, "overlayfs", HF_LEVEL_WARNING},
};

static void examine_filesystem(const examination *exam)
{
    static const char remedy[] =
        "put the folder on a local disk; for several machines use PostgreSQL";
    struct statfs found;

    if (statfs(exam->local->folder, &found) != 0) {
        tell(exam, HF_LEVEL_WARNING, "filesystem", remedy, "cannot be examined: %s",
             strerrordesc_np(errno));
        return;
    }
    for (size_t i = 0; i < sizeof filesystems / sizeof *filesystems; i++) {
        const filesystem *known = &filesystems[i];
        if ((unsigned)found.f_type != (unsigned)known->type)
            continue;
        tell(exam, known->level, "filesystem", remedy,
             known->type == OVERLAYFS_SUPER_MAGIC
                 ? "%s: locks are seen in this container only"
                 : "%s: file locks may be invisible to others or forgotten",
             known->name);
        return;
    }
    if (found.f_type == TMPFS_MAGIC)
        tell(exam, HF_LEVEL_OK, "filesystem", "",
             "tmpfs: locks work; records do not survive a reboot, tokens stay in order by the "
             "clock");
    else
        tell(exam, HF_LEVEL_OK, "filesystem", "", "local (type %#lx)", (long)found.f_type);
}

static void examine_space(const examination *exam)
{
    enum { ENOUGH_MB = 64 };
    struct statvfs found;

    if (statvfs(exam->local->folder, &found) != 0)
        return;
    uint64_t free_mb = (uint64_t)found.f_bavail * found.f_frsize >> 20;
    bool enough = free_mb >= ENOUGH_MB;
    tell(exam,
         enough        ? HF_LEVEL_OK
         : free_mb > 0 ? HF_LEVEL_WARNING
                       : HF_LEVEL_PROBLEM,
         "space", enough ? "" : "make room: a lock that cannot be recorded is not granted",
         "%" PRIu64 " MB free", free_mb);
}

static void examine_limits(const examination *exam)
{
    enum { ENOUGH = HF__LOCAL_FILES + 256 };
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    bool enough = files.rlim_cur == RLIM_INFINITY || files.rlim_cur >= ENOUGH;
    tell(exam, enough ? HF_LEVEL_OK : HF_LEVEL_WARNING, "limits",
         enough ? "" : "raise the limit of open files (ulimit -n, LimitNOFILE=)",
         "%" PRIuMAX " open files allowed%s", (uintmax_t)files.rlim_cur,
         enough ? "" : ", many locks and waits need more");
}

/* Two open file descriptions must exclude each other, and closing one must free its lock. */
static const char *test_locking(const char *path, int *first, int *second)
{
    const hf__claim claim = {.key = INT64_MAX, .mode = HF_EXCLUSIVE};
    const hf__claim shared = {.key = INT64_MAX, .mode = HF_SHARED};

    *first = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    *second = open(path, O_RDWR | O_CLOEXEC);
    if (*first < 0 || *second < 0)
        return "the test file cannot be opened";
    if (hf__local_lock_byte(*first, &claim, false) != 0)
        return "a free byte cannot be locked";
    if (hf__local_lock_byte(*second, &shared, false) != EAGAIN)
        return "two descriptions do not exclude each other";
    close(*first);
    *first = -1;
    if (hf__local_lock_byte(*second, &claim, false) != 0)
        return "closing a file does not free its locks";
    return NULL;
}

static const char *find_fault(const hf__local *local)
{
    char path[PATH_MAX];
    int first = -1;
    int second = -1;

    (void)snprintf(path, sizeof path, "%s/locks/test.%d", local->folder, local->self.pid);
    const char *wrong = test_locking(path, &first, &second);
    if (first >= 0)
        close(first);
    if (second >= 0)
        close(second);
    (void)unlink(path);
    return wrong;
}

static const char remedy_locks[] = "put the folder on a local disk of a Linux system";

static void examine_locks(const examination *exam)
{
    const char *wrong = find_fault(exam->local);

    if (wrong == NULL)
        tell(exam, HF_LEVEL_OK, "locks", "", "OFD locks work here");
    else
        tell(exam, HF_LEVEL_PROBLEM, "locks", remedy_locks, "%s", wrong);
}

/* Can the store's user open it? Root always can, so there it must be the folder owner's. */
static bool is_usable(const char *path, uid_t owner)
{
    struct stat found;

    if (geteuid() == 0)
        return stat(path, &found) != 0 || found.st_uid == owner;
    return access(path, R_OK | W_OK) == 0 || errno == ENOENT;
}

static void examine_files(const examination *exam)
{
    static const char *const others[] = {"holdfast.db", "data.db", "locks/create"};
    enum { OTHERS = sizeof others / sizeof *others };
    char path[PATH_MAX];
    char first[PATH_MAX] = "";
    char remedy[PATH_MAX + 64];
    struct stat folder;
    unsigned spoilt = 0;

    if (stat(exam->local->folder, &folder) != 0)
        return;
    for (unsigned i = 0; i < HF__LOCAL_FILES + OTHERS; i++) {
        if (i < HF__LOCAL_FILES)
            hf__local_file_path(exam->local, i, path, sizeof path);
        else
            (void)snprintf(path, sizeof path, "%s/%s", exam->local->folder,
                           others[i - HF__LOCAL_FILES]);
        if (is_usable(path, folder.st_uid))
            continue;
        if (spoilt++ == 0)
            memcpy(first, path, sizeof first);
    }
    if (spoilt == 0) {
        tell(exam, HF_LEVEL_OK, "files", "", "all can be opened by the folder's owner");
        return;
    }
    (void)snprintf(remedy, sizeof remedy, "chown -R --reference=%s %s", exam->local->folder,
                   exam->local->folder);
    tell(exam, HF_LEVEL_PROBLEM, "files", remedy,
         "%u cannot be opened by the folder's owner, so some locks always fail: %s", spoilt, first);
}

static int keep_text(void *arg, int count, char **values, char **names)
{
    (void)names;
    if (count > 0 && values[0] != NULL)
        (void)snprintf(arg, 256, "%s", values[0]);
    return 0;
}

static void examine_content(const examination *exam)
{
    char answer[256] = "";
    char journal[256] = "";
    hf_error why;

    sqlite3 *handle = exam->local->db.handle;
    if (sqlite3_exec(handle, "PRAGMA quick_check(1)", keep_text, answer, NULL) != SQLITE_OK ||
        sqlite3_exec(handle, "PRAGMA journal_mode", keep_text, journal, NULL) != SQLITE_OK) {
        if (hf__local_db_fail(exam->local, &why) != HF_OK)
            tell_error(exam, "database", &why);
    } else if (strcmp(answer, "ok") != 0) {
        tell(exam, HF_LEVEL_PROBLEM, "database", "move holdfast.db away: a new one is made",
             "holdfast.db is damaged: %s", answer);
    } else if (strcmp(journal, "wal") != 0) {
        tell(exam, HF_LEVEL_WARNING, "database", "put the folder on a local disk",
             "schema version %d, but no write-ahead log is possible here", HF__LOCAL_SCHEMA);
    } else {
        tell(exam, HF_LEVEL_OK, "database", "", "SQLite %s, schema version %d, in order",
             sqlite3_libversion(), HF__LOCAL_SCHEMA);
    }
}

static void examine_records(const examination *exam)
{
    hf_error why;
    int dead = 0;

    if (hf__local_bury(exam->local, &dead, &why) != HF_OK)
        tell_error(exam, "records", &why);
    else if (dead > 0)
        tell(exam, HF_LEVEL_OK, "records", "", "those of %d dead %s were removed", dead,
             dead == 1 ? "process" : "processes");
    else
        tell(exam, HF_LEVEL_OK, "records", "", "none of dead processes");
}

static void examine_database(const examination *exam)
{
    hf_error why;

    if (!exam->local->keeps_records) {
        tell(exam, HF_LEVEL_OK, "database", "", "not used: records are off, there are no tokens");
        return;
    }
    if (hf__local_db_enter(exam->local, NULL, &why) != HF_OK) {
        tell_error(exam, "database", &why);
        return;
    }
    examine_content(exam);
    examine_records(exam);
    hf__local_db_leave(exam->local);
}

hf_status hf__local_examine(hf__backend *backend, hf_finding_fn *report, void *arg, hf_error *err)
{
    const examination exam = {.local = (hf__local *)backend, .report = report, .arg = arg};

    (void)err;
    examine_folder(&exam);
    examine_filesystem(&exam);
    examine_space(&exam);
    examine_limits(&exam);
    examine_files(&exam);
    examine_locks(&exam);
    examine_database(&exam);
    return HF_OK;
}

/* A lease is a row: can one be written? NULL: yes. */
static const char *find_lease_fault(hf__local *local, hf_error *why)
{
    if (!local->keeps_records)
        return "records are off, and a lease is one";
    if (hf__local_db_enter(local, NULL, why) != HF_OK)
        return why->message;
    hf_status status = hf__local_begin(local, why);
    if (status == HF_OK)
        status = hf__local_lease(local, &(hf__local_session){.id = 1}, HF_LEASE_MIN_MS,
                                 &(int64_t){0}, why);
    bool written = status == HF_OK;
    (void)!hf__local_end(local, HF_INTERRUPTED, NULL); /* it is not to stay */
    hf__local_db_leave(local);
    return written ? NULL : why->message;
}

static void prove_lease(const examination *exam, const char *wrong)
{
    hf_error why = {0};
    const char *fault = wrong == NULL ? find_lease_fault(exam->local, &why) : wrong;

    if (fault == NULL)
        tell(exam, HF_LEVEL_OK, "lease", "", "it works: proven");
    else if (wrong == NULL)
        tell(exam, HF_LEVEL_PROBLEM, "lease", why.hint, "it does not work here: %s", fault);
    else
        tell(exam, HF_LEVEL_PROBLEM, "lease", remedy_locks, "it does not work here");
}

/* Sessions and transactions are kept by the same locks of the kernel; leases need both. */
hf_status hf__local_prove(const hf_store_options *options, hf_finding_fn *report, void *arg,
                          hf_error *err)
{
    static const char *const lifetimes[] = {"session", "transaction"};
    hf__backend *backend = NULL;
    hf_status status = hf__local_open(options, &backend, err);
    if (status != HF_OK)
        return status;
    examination exam = {(hf__local *)backend, report, arg};
    status = hf__local_make_folders(exam.local, err);
    const char *wrong = status == HF_OK ? find_fault(exam.local) : NULL;
    if (status == HF_OK && wrong == NULL)
        tell(&exam, HF_LEVEL_OK, "exclusion", "",
             "two open files exclude each other, and closing one frees its lock");
    else if (status == HF_OK)
        tell(&exam, HF_LEVEL_WARNING, "exclusion", remedy_locks, "%s", wrong);
    for (size_t i = 0; status == HF_OK && i < sizeof lifetimes / sizeof *lifetimes; i++)
        if (wrong == NULL)
            tell(&exam, HF_LEVEL_OK, lifetimes[i], "", "it works: proven");
        else
            tell(&exam, HF_LEVEL_PROBLEM, lifetimes[i], remedy_locks, "it does not work here");
    if (status == HF_OK)
        prove_lease(&exam, wrong);
    backend->ops->close(backend);
    return status;
}
