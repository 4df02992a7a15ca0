/* Lock files: which byte of which file is a key's, opening them, locking, and /proc/locks. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/local/local.h"

/*
 * Spreads keys over the shards, whether they are small numbers or hashes: every bit counts. Never
 * change it: processes of all versions must choose the same file.
 */
static unsigned mix(int64_t key)
{
    uint64_t bits = (uint64_t)key;

    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)(bits >> 40);
}

/* File offsets cannot be negative, so negative keys have files of their own. */
static unsigned family(const hf__claim *claim)
{
    return (claim->space == HF_PAIR ? 2U : 0U) + (claim->key < 0 ? 1U : 0U);
}

unsigned hf__local_lock_file(const hf__claim *claim)
{
    return family(claim) * HF__LOCAL_LOCK_SHARDS + mix(claim->key) % HF__LOCAL_LOCK_SHARDS;
}

unsigned hf__local_gate_file(const hf__claim *claim)
{
    return HF__LOCAL_GATES + family(claim) * HF__LOCAL_GATE_SHARDS +
           mix(claim->key) % HF__LOCAL_GATE_SHARDS;
}

void hf__local_file_path(const hf__local *local, unsigned index, char *out, size_t out_size)
{
    static const char *const families[] = {"b+", "b-", "p+", "p-"};

    if (index < HF__LOCAL_GATES)
        (void)snprintf(out, out_size, "%s/locks/%s%02x", local->folder,
                       families[index / HF__LOCAL_LOCK_SHARDS], index % HF__LOCAL_LOCK_SHARDS);
    else
        (void)snprintf(out, out_size, "%s/locks/g%s%x", local->folder,
                       families[(index - HF__LOCAL_GATES) / HF__LOCAL_GATE_SHARDS],
                       (index - HF__LOCAL_GATES) % HF__LOCAL_GATE_SHARDS);
}

/* The claim that a byte of a lock file stands for; false for gates. */
static bool claim_at(unsigned index, int64_t byte, hf__claim *claim)
{
    if (index >= HF__LOCAL_GATES)
        return false;
    unsigned in_family = index / HF__LOCAL_LOCK_SHARDS;
    *claim = (hf__claim){
        .key = (in_family & 1U) != 0 ? (int64_t)((uint64_t)byte | (UINT64_C(1) << 63)) : byte,
        .space = (in_family & 2U) != 0 ? HF_PAIR : HF_BIGINT,
    };
    return true;
}

/* ---- folders and opening --------------------------------------------------------------------- */

static hf_status folder_fail(const char *path, int error_number, hf_error *err)
{
    bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EIO;
    hf_status status = hf__fail_errno(err, full ? HF_UNREACHABLE : HF_CONFIG, error_number,
                                      "cannot use the state folder %s", path);

    if (full)
        hf__hint(err, "make room on its filesystem, or choose another folder: local:/path");
    else
        hf__hint(err, "choose a folder that you may write to: local:/path/to/folder");
    return status;
}

void hf__local_give_away(const char *path)
{
    char folder[PATH_MAX];
    struct stat around;
    struct stat found;

    if (geteuid() != 0)
        return;
    (void)snprintf(folder, sizeof folder, "%s", path);
    if (stat(dirname(folder), &around) != 0 || around.st_uid == 0)
        return;
    /* O_PATH: closing the descriptor does not drop the locks of SQLite. */
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &found) == 0 && found.st_uid == 0 &&
        (S_ISDIR(found.st_mode) ||
         (S_ISREG(found.st_mode) && found.st_size == 0 && found.st_nlink == 1)))
        (void)!fchownat(fd, "", around.st_uid, around.st_gid, AT_EMPTY_PATH);
    close(fd);
}

static hf_status make_folder(const char *path, hf_error *err)
{
    struct stat found;

    if (mkdir(path, 0700) == 0) {
        hf__local_give_away(path);
        return HF_OK;
    }
    if (errno != EEXIST)
        return folder_fail(path, errno, err);
    if (stat(path, &found) != 0)
        return folder_fail(path, errno, err);
    if (!S_ISDIR(found.st_mode))
        return folder_fail(path, ENOTDIR, err);
    return HF_OK;
}

static hf_status make_parents(char *path, hf_error *err)
{
    struct stat found;

    if (stat(path, &found) == 0)
        return HF_OK;
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        /* On a parent that exists, mkdir may fail with EROFS or EACCES instead of EEXIST. */
        hf_status status = stat(path, &found) == 0 ? HF_OK : make_folder(path, err);
        *slash = '/';
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/*
 * In a folder of somebody else's, such as one that was made for us in /tmp, lock files could be
 * taken away, and ours put in place of other files. Root may use everybody's.
 */
static hf_status check_owner(const char *path, int (*look)(const char *, struct stat *),
                             hf_error *err)
{
    struct stat found;

    if (look(path, &found) != 0)
        return folder_fail(path, errno, err);
    if (!S_ISDIR(found.st_mode))
        return folder_fail(path, ENOTDIR, err);
    if (found.st_uid == geteuid() || found.st_uid == 0 || geteuid() == 0)
        return HF_OK;
    hf_status status = hf__fail(err, HF_CONFIG, "the state folder %s is another user's", path);
    hf__hint(err, "choose a folder of your own: local:/path/to/folder");
    return status;
}

hf_status hf__local_make_folders(const hf__local *local, hf_error *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/locks", local->folder) >= (int)sizeof path)
        return folder_fail(local->folder, ENAMETOOLONG, err);
    hf_status status = make_parents(path, err);
    if (status == HF_OK)
        status = check_owner(local->folder, stat, err);
    if (status == HF_OK)
        status = make_folder(path, err);
    if (status == HF_OK)
        status = check_owner(path, lstat, err);
    if (status == HF_OK && access(path, W_OK | X_OK) != 0)
        status = folder_fail(path, errno, err);
    return status;
}

hf_status hf__local_file_fail(const hf__local *local, unsigned index, int error_number,
                              const char *what, hf_error *err)
{
    char path[PATH_MAX];
    hf_status code = HF_SYSTEM;
    const char *hint = "";

    hf__local_file_path(local, index, path, sizeof path);
    switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
        code = HF_UNREACHABLE;
        hint = "make room on its filesystem, or choose another folder: local:/path";
        break;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENOENT:
        code = HF_CONFIG;
        hint = "choose a folder that you may write to: local:/path/to/folder";
        break;
    case EINVAL:
    case EOVERFLOW:
    case EOPNOTSUPP:
        code = HF_CONFIG;
        hint = "its filesystem has no 64-bit OFD locks: choose a folder on a local disk";
        break;
    case EMFILE: hint = "raise the limit of open files (ulimit -n)"; break;
    case ENOLCK: hint = "the kernel is out of file locks: release some"; break;
    default: break;
    }
    hf_status status = hf__fail_errno(err, code, error_number, "cannot %s %s", what, path);
    hf__hint(err, "%s", hint);
    return status;
}

hf_status hf__local_file_open(const hf__local *local, hf__local_files *files, unsigned index,
                              bool create, int *fd, hf_error *err)
{
    hf__local_file *file = &files->file[index];
    char path[PATH_MAX];
    struct stat found;

    *fd = file->fd_plus_one - 1;
    if (*fd >= 0)
        return HF_OK;

    hf__local_file_path(local, index, path, sizeof path);
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0);
    *fd = open(path, flags, 0600);
    if (*fd < 0 && errno == ENOENT && create) {
        /* Somebody has removed the folder: make it again. */
        hf_status status = hf__local_make_folders(local, err);
        if (status != HF_OK)
            return status;
        *fd = open(path, flags, 0600);
    }
    if (*fd < 0 && errno == ENOENT && !create)
        return HF_OK;
    if (*fd < 0)
        return hf__local_file_fail(local, index, errno, "open", err);
    if (fstat(*fd, &found) != 0) {
        int error_number = errno;
        close(*fd);
        return hf__local_file_fail(local, index, error_number, "open", err);
    }
    if (create && found.st_uid == 0)
        hf__local_give_away(path);
    *file = (hf__local_file){
        .fd_plus_one = *fd + 1,
        .device = found.st_dev,
        .inode = found.st_ino,
    };
    return HF_OK;
}

void hf__local_file_close(hf__local_files *files, unsigned index)
{
    if (files->file[index].fd_plus_one > 0)
        close(files->file[index].fd_plus_one - 1);
    files->file[index] = (hf__local_file){0};
}

void hf__local_files_close(hf__local_files *files)
{
    for (unsigned index = 0; index < HF__LOCAL_FILES; index++)
        hf__local_file_close(files, index);
}

bool hf__local_file_is_current(const hf__local *local, const hf__local_files *files, unsigned index)
{
    const hf__local_file *file = &files->file[index];
    char path[PATH_MAX];
    struct stat found;

    hf__local_file_path(local, index, path, sizeof path);
    if (stat(path, &found) == 0)
        return found.st_dev == file->device && found.st_ino == file->inode;
    if (errno == ENOENT || errno == ENOTDIR)
        return false;
    /* The path cannot be read now. The file was removed if it has no name left. */
    return fstat(file->fd_plus_one - 1, &found) == 0 && found.st_nlink > 0;
}

/* ---- one byte -------------------------------------------------------------------------------- */

static struct flock byte_of(const hf__claim *claim, hf_mode mode)
{
    return (struct flock){
        .l_type = mode == HF_SHARED ? F_RDLCK : F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(claim->key & INT64_MAX),
        .l_len = 1,
    };
}

int hf__local_lock_byte(int fd, const hf__claim *claim, bool wait)
{
    struct flock lock = byte_of(claim, claim->mode);

    while (fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0) {
        if (errno == EACCES)
            return EAGAIN;
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

int hf__local_unlock_byte(int fd, const hf__claim *claim)
{
    struct flock lock = byte_of(claim, HF_EXCLUSIVE);

    lock.l_type = F_UNLCK;
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

int hf__local_probe_byte(int fd, const hf__claim *claim, hf_mode mode, bool *held)
{
    struct flock lock = byte_of(claim, mode);

    if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
        return errno;
    *held = lock.l_type != F_UNLCK;
    return 0;
}

/* ---- what the kernel says of locks -------------------------------------------------------- */

/* /proc/locks also has the locks of processes that record nothing. */

typedef struct inode_of {
    unsigned major, minor;
    uint64_t inode;
    bool exists;
} inode_of;

/* One line: "7: OFDLCK ADVISORY  WRITE -1 fe:00:10952735 42 42"; the last word may be EOF. */
struct line {
    inode_of file;
    bool shared;
    int64_t start, end;
};

/* The next word of the line, without the blanks before it; NULL at the end. */
static char *next_word(char **rest)
{
    char *word = NULL;

    do
        word = strsep(rest, " \n");
    while (word != NULL && *word == '\0');
    return word;
}

static bool parse_line(char *text, struct line *out)
{
    enum { NUMBER, KIND, ADVISORY, MODE, PID, FILE_ID, START, END, WORDS };
    char *word[WORDS];

    for (int i = 0; i < WORDS; i++)
        if ((word[i] = next_word(&text)) == NULL)
            return false;
    /* The line of a waiter has an arrow in place of the kind: skip it. */
    if (strcmp(word[KIND], "OFDLCK") != 0)
        return false;
    out->shared = strcmp(word[MODE], "READ") == 0;
    char *at = word[FILE_ID];
    out->file.major = (unsigned)strtoul(at, &at, 16);
    out->file.minor = *at == ':' ? (unsigned)strtoul(at + 1, &at, 16) : 0;
    out->file.inode = *at == ':' ? strtoull(at + 1, NULL, 10) : 0;
    out->start = strtoll(word[START], NULL, 10);
    out->end = strcmp(word[END], "EOF") == 0 ? INT64_MAX : strtoll(word[END], NULL, 10);
    return out->start >= 0;
}

static hf_status find_inodes(const hf__local *local, inode_of *files, hf_error *err)
{
    char path[PATH_MAX];
    struct stat found;

    for (unsigned index = 0; index < HF__LOCAL_GATES; index++) {
        hf__local_file_path(local, index, path, sizeof path);
        if (stat(path, &found) != 0) {
            if (errno != ENOENT)
                return hf__local_file_fail(local, index, errno, "look at", err);
            continue;
        }
        files[index] = (inode_of){
            .major = major(found.st_dev),
            .minor = minor(found.st_dev),
            .inode = found.st_ino,
            .exists = true,
        };
    }
    return HF_OK;
}

static unsigned find_file(const inode_of *files, const inode_of *wanted)
{
    unsigned index = 0;

    while (index < HF__LOCAL_GATES &&
           (!files[index].exists || files[index].inode != wanted->inode ||
            files[index].major != wanted->major || files[index].minor != wanted->minor))
        index++;
    return index;
}

/*
 * The kernel shows neighbouring bytes that one description has locked in one mode as one range. Of
 * these, the bytes whose keys belong to other shards are not ours.
 */
static hf_status add_bytes(unsigned index, const struct line *line, hf__local_locked_fn *add,
                           void *arg, hf_error *err)
{
    enum { ABSURD = 1000000 }; /* somebody else's lock: we lock single bytes */
    hf_status status = HF_OK;
    hf__claim claim;

    if (line->end < line->start || line->end - line->start > ABSURD)
        return HF_OK;
    for (int64_t byte = line->start; status == HF_OK; byte++) {
        if (claim_at(index, byte, &claim) && hf__local_lock_file(&claim) == index) {
            claim.mode = line->shared ? HF_SHARED : HF_EXCLUSIVE;
            status = add(arg, &claim, err);
        }
        if (byte == line->end)
            break;
    }
    return status;
}

hf_status hf__local_ask_kernel(const hf__local *local, hf__local_locked_fn *add, void *arg,
                               hf_error *err)
{
    inode_of files[HF__LOCAL_GATES] = {{0}};
    char text[256];
    struct line line;

    FILE *locks = fopen("/proc/locks", "re");
    if (locks == NULL)
        return HF_OK;
    hf_status status = find_inodes(local, files, err);
    while (status == HF_OK && fgets(text, sizeof text, locks) != NULL) {
        if (!parse_line(text, &line))
            continue;
        unsigned index = find_file(files, &line.file);
        if (index < HF__LOCAL_GATES)
            status = add_bytes(index, &line, add, arg, err);
    }
    (void)fclose(locks);
    return status;
}
