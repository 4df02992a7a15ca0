/* Locks as the kernel lists them in /proc/locks: also those whose holders record nothing. */
#include "lib/local/local.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

typedef struct inode_of {
    unsigned major, minor;
    uint64_t inode;
    bool exists;
} inode_of;

/* One line: "7: OFDLCK ADVISORY  WRITE -1 fe:00:10952735 42 42", the end may be EOF. */
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
    /* A waiter's line has an arrow in place of the kind, and is none of ours. */
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

static void find_inodes(const hf__local *local, inode_of *files)
{
    char path[PATH_MAX];
    struct stat found;

    for (unsigned index = 0; index < HF__LOCAL_GATES; index++) {
        hf__local_file_path(local, index, path, sizeof path);
        if (stat(path, &found) != 0)
            continue;
        files[index] = (inode_of){
            .major = major(found.st_dev),
            .minor = minor(found.st_dev),
            .inode = found.st_ino,
            .exists = true,
        };
    }
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

/* The kernel joins neighbouring bytes that one description has locked in one mode. */
static hf_status add_bytes(unsigned index, const struct line *line, hf__local_locked_fn *add,
                           void *arg, hf_error *err)
{
    enum { ABSURD = 1000000 }; /* not ours: we lock byte by byte */
    hf_status status = HF_OK;
    hf__claim claim;

    if (line->end < line->start || line->end - line->start > ABSURD)
        return HF_OK;
    for (int64_t byte = line->start; status == HF_OK; byte++) {
        if (hf__local_claim_at(index, byte, &claim) && hf__local_lock_file(&claim) == index) {
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
    hf_status status = HF_OK;
    char text[256];
    struct line line;

    FILE *locks = fopen("/proc/locks", "re");
    if (locks == NULL)
        return HF_OK;
    find_inodes(local, files);
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
