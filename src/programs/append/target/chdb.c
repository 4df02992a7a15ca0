/*
 * chdb: ClickHouse inside this process, from a library that is loaded only when it is needed. One
 * process at a time may have a folder open, so processes wait for each other on a lock of a local
 * store that is kept inside the folder.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/time.h"
#include "programs/append/target/target.h"

enum { LOOK_MS = 50, FEED_LOOK_MS = 20, PIECE = 256 << 10 };

struct connection {
    void *internal;
};

/* The functions of chdb.h that we use. */
struct library {
    void *handle;
    struct connection **(*connect)(int argc, char **argv);
    void (*close)(struct connection **connection);
    void *(*query)(struct connection *connection, const char *sql, const char *format);
    void (*destroy)(void *result);
    char *(*buffer)(void *result);
    size_t (*length)(void *result);
    const char *(*error)(void *result);
};

struct chdb {
    hf__target base;
    char *name;
    char *folder; /* its real path */
    struct library library;
    struct connection **connection;
    hf_store *store;
    hf_lock *lock;
};

/* ---- The library ----------------------------------------------------------------------------- */

static bool find_symbols(struct library *library)
{
    const struct {
        const char *name;
        void **place;
    } symbols[] = {
        {"chdb_connect", (void **)&library->connect},
        {"chdb_close_conn", (void **)&library->close},
        {"chdb_query", (void **)&library->query},
        {"chdb_destroy_query_result", (void **)&library->destroy},
        {"chdb_result_buffer", (void **)&library->buffer},
        {"chdb_result_length", (void **)&library->length},
        {"chdb_result_error", (void **)&library->error},
    };

    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if ((*symbols[i].place = dlsym(library->handle, symbols[i].name)) == NULL)
            return false;
    return true;
}

static hf_status load_library(struct library *library, const char *stated, hf_error *err)
{
    static const char *const places[] = {"libchdb.so", "/usr/local/lib/libchdb.so",
                                         "/usr/lib/libchdb.so", "/opt/chdb/libchdb.so"};
    const char *why = NULL;
    hf_status status = HF_OK;

    if (stated != NULL)
        library->handle = dlopen(stated, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0;
         stated == NULL && library->handle == NULL && i < sizeof places / sizeof *places; i++)
        library->handle = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL) {
        why = dlerror();
        status =
            hf__fail(err, HF_CONFIG, "chdb cannot be loaded: %s", why != NULL ? why : "not found");
        hf__hint(err,
                 "install libchdb.so (the chdb release for C, or the npm package "
                 "@chdb/lib-linux-x64-gnu) where libraries are, or name the file in HOLDFAST_CHDB");
        return status;
    }
    if (find_symbols(library))
        return HF_OK;
    status = hf__fail(err, HF_CONFIG, "libchdb.so is too old: %s", dlerror());
    hf__hint(err, "install a release of chdb with chdb_connect and chdb_query");
    return status;
}

/* ---- The folder ------------------------------------------------------------------------------ */

static hf_status make_folder(struct chdb *chdb, const char *path, hf_error *err)
{
    if (path[0] == '\0') {
        hf_status status = hf__fail(err, HF_INVALID, "chdb: needs a folder");
        hf__hint(err, "chdb:/path/to/folder");
        return status;
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot make the folder %s", path);
    chdb->folder = realpath(path, NULL);
    if (chdb->folder == NULL)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot use the folder %s", path);
    hf__buf name = {0};
    hf__buf_printf(&name, "chdb:%s", chdb->folder);
    chdb->name = name.data;
    return name.broken ? hf__no_memory(err) : HF_OK;
}

static void on_wait(const hf_error *why, void *arg)
{
    const hf__target_options *options = arg;
    char text[sizeof why->message + 32];

    (void)snprintf(text, sizeof text, "waiting: %s", why->message);
    if (options->note != NULL)
        options->note(options->arg, text);
}

static hf_status lock_folder(struct chdb *chdb, const hf__target_options *options, hf_error *err)
{
    hf_store_options store_options = HF_STORE_OPTIONS_INIT;
    hf_lock_spec spec = HF_LOCK_SPEC_INIT;
    const hf_target target = HF_LABEL(chdb->name);
    hf__buf url = {0};

    hf__buf_printf(&url, "local:%s/.holdfast", chdb->folder);
    store_options.url = url.data;
    store_options.application = "holdfast append";
    hf_status status =
        url.broken ? hf__no_memory(err) : hf_store_open(&store_options, &chdb->store, err);
    hf__buf_free(&url);
    if (status != HF_OK)
        return status;
    spec.targets = &target;
    spec.target_count = 1;
    spec.wait_ms = options->wait_ms;
    spec.on_wait = on_wait;
    spec.arg = (void *)options;
    return hf_lock_acquire(chdb->store, &spec, &chdb->lock, err);
}

static struct connection **connect_path(const struct chdb *chdb)
{
    hf__buf path = {0};

    hf__buf_printf(&path, "--path=%s", chdb->folder);
    if (path.broken)
        return NULL;
    char program[] = "clickhouse", *argv[] = {program, path.data, NULL};
    struct connection **made = chdb->library.connect(2, argv);
    hf__buf_free(&path);
    return made;
}

static hf_status connect_folder(struct chdb *chdb, hf_error *err)
{
    chdb->connection = connect_path(chdb);
    if (chdb->connection != NULL && *chdb->connection != NULL)
        return HF_OK;
    hf_status status = hf__fail(err, HF_UNREACHABLE, "%s cannot be opened", chdb->name);
    hf__hint(err,
             "one process at a time may have it open, readers too: is another program using it?");
    return status;
}

/* ---- Statements, and how a long one is killed ------------------------------------------------ */

static hf_status run(struct chdb *chdb, const hf__statement *statement, const char *sql,
                     hf__buf *answer, bool during_rows, hf_error *err)
{
    struct library *library = &chdb->library;
    void *result = library->query(*chdb->connection, sql, "TabSeparated");

    if (result == NULL)
        return hf__fail(err, HF_DATABASE, "%s: cannot %s: no answer", chdb->name, statement->what);
    const char *refused = library->error(result);
    hf_status status = HF_OK;
    if (refused != NULL && refused[0] != '\0') {
        chdb->base.fault.was_sent = true;
        status =
            hf__target_refused(&chdb->base, statement, refused, strlen(refused), during_rows, err);
    } else if (answer != NULL && library->length(result) > 0) {
        hf__buf_add(answer, library->buffer(result), library->length(result));
    }
    library->destroy(result);
    return status;
}

struct watch {
    struct chdb *chdb;
    pthread_t thread;
    atomic_bool over;
};

/* Needs a second connection: the first one is busy with the statement. */
static void kill_statements(struct chdb *chdb)
{
    struct library *library = &chdb->library;
    struct connection **second = connect_path(chdb);

    if (second == NULL)
        return;
    if (*second != NULL) {
        void *result = library->query(
            *second, "KILL QUERY WHERE query NOT LIKE 'KILL QUERY%' ASYNC", "TabSeparated");
        if (result != NULL)
            library->destroy(result);
    }
    library->close(second);
}

static void *await_stop(void *arg)
{
    struct watch *watch = arg;
    const hf__stop *stop = watch->chdb->base.stop;

    while (!atomic_load(&watch->over) && !hf__stop_pause(stop, LOOK_MS))
        continue;
    while (!atomic_load(&watch->over)) { /* again, for it may not have begun yet */
        kill_statements(watch->chdb);
        (void)poll(NULL, 0, LOOK_MS);
    }
    return NULL;
}

static hf_status query(hf__target *target, const hf__statement *statement, hf__buf *answer,
                       hf_error *err)
{
    struct chdb *chdb = (struct chdb *)target;
    struct watch watch = {.chdb = chdb};

    if (statement->limit_ms >= 0)
        return run(chdb, statement, statement->sql, answer, false, err);
    atomic_init(&watch.over, false);
    if (hf__thread_start(&watch.thread, 0, await_stop, &watch) != 0)
        return hf__fail(err, HF_NO_MEMORY, "cannot start a thread");
    hf_status status = run(chdb, statement, statement->sql, answer, false, err);
    atomic_store(&watch.over, true);
    pthread_join(watch.thread, NULL);
    return status;
}

/*
 * Rows. chdb takes no stream, but it reads files: a thread writes the rows into a named pipe. The
 * end of the pipe counts as the end of the rows, so a stream that must not count ends with a bad
 * row.
 */

struct feed {
    char *folder;
    char *path;
    const hf__format *format;
    hf__rows_input *input;
    hf__flow *flow;
    const hf__stop *stop;
    pthread_t thread;
    atomic_bool over; /* the INSERT has ended */
    bool is_whole;    /* all of the input went through the pipe */
    hf_status status; /* of reading the input */
    hf_error err;
};

/* chdb may never open the pipe, because the statement fails first. */
static int open_pipe(const struct feed *feed)
{
    int fd;

    while ((fd = open(feed->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO &&
           !atomic_load(&feed->over))
        (void)poll(NULL, 0, 1);
    return fd;
}

/* False when nobody reads any more. */
static bool write_all(const struct feed *feed, int fd, const char *bytes, size_t size)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};

    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (written < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        } else if (atomic_load(&feed->over) || poll(&room, 1, FEED_LOOK_MS) < 0) {
            return false;
        }
    }
    return true;
}

static void await_input(const struct feed *feed)
{
    struct pollfd fds[2] = {{.fd = hf__rows_input_fd(feed->input), .events = POLLIN},
                            {.fd = feed->stop->fd, .events = POLLIN}};

    (void)poll(fds, 2, FEED_LOOK_MS);
}

static void pump(struct feed *feed, int fd, char *piece)
{
    bool goes_on = true;

    while (goes_on) {
        size_t got = 0;
        bool wait = false;
        if (!hf__stop_is_set(feed->stop))
            feed->status = hf__rows_input_read(feed->input, piece, PIECE, &got, &wait, &feed->err);
        if (hf__stop_is_set(feed->stop) || feed->status != HF_OK) {
            (void)!write_all(feed, fd, feed->format->bad, feed->format->bad_size);
            return;
        }
        feed->is_whole = got == 0 && !wait;
        if (wait)
            await_input(feed);
        else
            goes_on = got > 0 && write_all(feed, fd, piece, got);
        goes_on = goes_on && !atomic_load(&feed->over);
        hf__flow_tell(feed->flow, feed->input);
    }
}

static void *feed_pipe(void *arg)
{
    struct feed *feed = arg;
    char *piece = malloc(PIECE);
    int fd = open_pipe(feed);

    if (piece != NULL && fd >= 0)
        pump(feed, fd, piece);
    else if (piece == NULL)
        feed->status = hf__no_memory(&feed->err);
    if (fd >= 0)
        close(fd);
    free(piece);
    return NULL;
}

static void free_feed(struct feed *feed)
{
    if (feed->path != NULL)
        (void)unlink(feed->path);
    if (feed->folder != NULL)
        (void)rmdir(feed->folder);
    free(feed->path);
    free(feed->folder);
    free(feed);
}

/* Removes the pipes of processes that were killed. We have the folder to ourselves. */
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

static hf_status make_pipe(struct feed *feed, const char *folder, hf_error *err)
{
    hf__buf text = {0};

    hf__buf_printf(&text, "%s/.holdfast/rows-XXXXXX", folder);
    feed->folder = text.data;
    if (text.broken)
        return hf__no_memory(err);
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
        return hf__no_memory(err);
    return mkfifo(feed->path, 0600) == 0
               ? HF_OK
               : hf__fail_errno(err, HF_SYSTEM, errno, "cannot make the pipe %s", feed->path);
}

/* All signals are blocked: SIGPIPE, when the reader goes away, must not end the process. */
static bool start_thread(struct feed *feed)
{
    return hf__thread_start(&feed->thread, 0, feed_pipe, feed) == 0;
}

/* Makes the pipe in the folder. input belongs to the thread until end_feed. */
static hf_status start_feed(const char *folder, const hf__format *format, hf__rows_input *input,
                            hf__flow *flow, const hf__stop *stop, struct feed **out, hf_error *err)
{
    struct feed *feed = calloc(1, sizeof *feed);

    if (feed == NULL)
        return hf__no_memory(err);
    feed->format = format;
    feed->input = input;
    feed->flow = flow;
    feed->stop = stop;
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

/*
 * Waits for the thread and frees it. Returns the status of the INSERT, or the input's own failure.
 */
static hf_status end_feed(struct feed *feed, hf_status status, hf_error *err)
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

static hf_status insert(hf__target *target, const hf__statement *statement,
                        const hf__format *format, hf__rows_input *input, hf__flow *flow,
                        hf_error *err)
{
    struct chdb *chdb = (struct chdb *)target;
    struct feed *feed = NULL;
    hf__buf sql = {0};

    target->fault = (hf__fault){0};
    hf_status status = start_feed(chdb->folder, format, input, flow, target->stop, &feed, err);
    if (status != HF_OK)
        return status;
    hf__buf_printf(&sql, "%s SELECT * FROM file(", statement->sql);
    hf__quote_text(&sql, feed->path);
    hf__buf_printf(&sql,
                   ", '%s') SETTINGS use_structure_from_insertion_table_in_table_functions = 1",
                   format->name);
    status = sql.broken ? hf__no_memory(err) : run(chdb, statement, sql.data, NULL, true, err);
    hf__buf_free(&sql);
    return end_feed(feed, status, err);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void reconnect(hf__target *target)
{
    (void)target; /* the one connection is to ourselves */
}

static void close_chdb(hf__target *target)
{
    struct chdb *chdb = (struct chdb *)target;

    if (chdb->connection != NULL)
        chdb->library.close(chdb->connection);
    hf_lock_free(chdb->lock);
    hf_store_close(chdb->store);
    /* The library stays loaded: its threads outlive the connection. */
    free(chdb->name);
    free(chdb->folder);
    free(chdb);
}

static const hf__target_ops chdb_ops = {
    .query = query,
    .insert = insert,
    .reconnect = reconnect,
    .close = close_chdb,
};

hf_status hf__chdb_open(const hf__target_options *options, hf__target **target, hf_error *err)
{
    struct chdb *chdb = calloc(1, sizeof *chdb);

    if (chdb == NULL)
        return hf__no_memory(err);
    hf_status status = load_library(&chdb->library, options->library, err);
    if (status == HF_OK)
        status = make_folder(chdb, options->url + strlen("chdb:"), err);
    if (status == HF_OK)
        status = lock_folder(chdb, options, err);
    if (status == HF_OK)
        status = connect_folder(chdb, err);
    if (status != HF_OK) {
        close_chdb(&chdb->base);
        return status;
    }
    chdb->base = (hf__target){.ops = &chdb_ops,
                              .name = chdb->name,
                              .database = "default",
                              .user = "",
                              .stop = options->stop,
                              .is_here = true,
                              .is_embedded = true};
    *target = &chdb->base;
    return HF_OK;
}
