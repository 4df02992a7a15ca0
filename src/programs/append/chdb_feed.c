#include "programs/append/chdb_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

enum { PIECE = 256 << 10, LOOK_MS = 20, TELL_EVERY_MS = 100 };

struct hf__chdb_feed {
    char *folder;
    char *path;
    const hf__format *format;
    hf__input *input;
    const hf__flow *flow;
    const hf__halt *halt;
    pthread_t thread;
    atomic_bool over; /* the INSERT has ended */
    int64_t told_ms;
    bool is_whole;    /* all of the input went through the pipe */
    hf_status status; /* of the input */
    hf_error err;
};

const char *hf__chdb_feed_path(const hf__chdb_feed *feed)
{
    return feed->path;
}

/* The reader may never come: the statement may fail before it opens the file. */
static int open_pipe(const hf__chdb_feed *feed)
{
    int fd;

    while ((fd = open(feed->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO &&
           !atomic_load(&feed->over))
        (void)poll(NULL, 0, 1);
    return fd;
}

/* False when nobody reads any more. */
static bool write_all(const hf__chdb_feed *feed, int fd, const char *bytes, size_t size)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};

    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        } else if (atomic_load(&feed->over) || poll(&room, 1, LOOK_MS) < 0) {
            return false;
        }
    }
    return true;
}

static void await_input(const hf__chdb_feed *feed)
{
    struct pollfd fds[2] = {{.fd = hf__input_fd(feed->input), .events = POLLIN},
                            {.fd = feed->halt->fd, .events = POLLIN}};

    (void)poll(fds, 2, LOOK_MS);
}

static void tell(hf__chdb_feed *feed)
{
    int64_t now = hf__now_ms();

    if (feed->flow == NULL || now - feed->told_ms < TELL_EVERY_MS)
        return;
    feed->told_ms = now;
    feed->flow->tell(feed->flow->arg, feed->input);
}

/* The end of the pipe counts as the end of the rows: what must not count ends with a bad row. */
static void pump(hf__chdb_feed *feed, int fd, char *piece)
{
    bool goes_on = true;

    while (goes_on) {
        size_t got = 0;
        bool wait = false;
        if (hf__halt_get(feed->halt) == HF__GO_ON)
            feed->status = hf__input_read(feed->input, piece, PIECE, &got, &wait, &feed->err);
        if (hf__halt_get(feed->halt) != HF__GO_ON || feed->status != HF_OK) {
            (void)!write_all(feed, fd, feed->format->bad, feed->format->bad_size);
            return;
        }
        feed->is_whole = got == 0 && !wait;
        if (wait)
            await_input(feed);
        else
            goes_on = got > 0 && write_all(feed, fd, piece, got);
        goes_on = goes_on && !atomic_load(&feed->over);
        tell(feed);
    }
}

static void *feed_pipe(void *arg)
{
    hf__chdb_feed *feed = arg;
    char *piece = malloc(PIECE);
    int fd = open_pipe(feed);

    if (piece != NULL && fd >= 0)
        pump(feed, fd, piece);
    else if (piece == NULL)
        feed->status = hf__fail(&feed->err, HF_NO_MEMORY, "out of memory");
    if (fd >= 0)
        close(fd);
    free(piece);
    return NULL;
}

static void free_feed(hf__chdb_feed *feed)
{
    if (feed->path != NULL)
        (void)unlink(feed->path);
    if (feed->folder != NULL)
        (void)rmdir(feed->folder);
    free(feed->path);
    free(feed->folder);
    free(feed);
}

/* Of processes that were killed: the folder is ours now. */
static void drop_old_pipes(const char *folder)
{
    hf__buf pattern = {0};
    glob_t found = {0};

    hf__buf_printf(&pattern, "%s/.holdfast/rows-*/pipe", folder);
    if (!pattern.broken && glob(pattern.data, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            (void)unlink(found.gl_pathv[i]);
            *strrchr(found.gl_pathv[i], '/') = '\0';
            (void)rmdir(found.gl_pathv[i]);
        }
    globfree(&found);
    hf__buf_free(&pattern);
}

static hf_status make_pipe(hf__chdb_feed *feed, const char *folder, hf_error *err)
{
    hf__buf text = {0};

    hf__buf_printf(&text, "%s/.holdfast/rows-XXXXXX", folder);
    feed->folder = text.data;
    if (text.broken)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    if (mkdtemp(feed->folder) == NULL) {
        hf_status status = hf__fail_errno(err, HF_SYSTEM, errno, "cannot make %s", feed->folder);
        free(feed->folder);
        feed->folder = NULL;
        return status;
    }
    hf__buf path = {0};
    hf__buf_printf(&path, "%s/pipe", feed->folder);
    feed->path = path.data;
    if (path.broken)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    return mkfifo(feed->path, 0600) == 0
               ? HF_OK
               : hf__fail_errno(err, HF_SYSTEM, errno, "cannot make the pipe %s", feed->path);
}

/* A write after the reader has gone must not end the process. */
static bool start_thread(hf__chdb_feed *feed)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&feed->thread, NULL, feed_pipe, feed) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

hf_status hf__chdb_feed_start(const char *folder, const hf__format *format, hf__input *input,
                              const hf__flow *flow, const hf__halt *halt, hf__chdb_feed **out,
                              hf_error *err)
{
    hf__chdb_feed *feed = calloc(1, sizeof *feed);

    if (feed == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    feed->format = format;
    feed->input = input;
    feed->flow = flow;
    feed->halt = halt;
    atomic_init(&feed->over, false);
    drop_old_pipes(folder);
    hf_status status = make_pipe(feed, folder, err);
    if (status == HF_OK && !start_thread(feed))
        status = hf__fail(err, HF_NO_MEMORY, "cannot start a thread");
    if (status != HF_OK)
        free_feed(feed);
    else
        *out = feed;
    return status;
}

hf_status hf__chdb_feed_end(hf__chdb_feed *feed, hf_status status, hf_error *err)
{
    atomic_store(&feed->over, true);
    pthread_join(feed->thread, NULL);
    hf_status input = feed->status;
    if (input != HF_OK && err != NULL)
        *err = feed->err;
    if (input == HF_OK && status == HF_OK && !feed->is_whole)
        status = hf__fail(err, HF_IN_DOUBT, "chdb stopped before the end of the rows");
    free_feed(feed);
    return input != HF_OK ? input : status;
}
