#include "programs/ingest/sources/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "programs/ingest/sources/lines.h"

enum {
    STEP_MS = 10,   /* between two checks whether the command has exited */
    EXIT_MS = 2000, /* given to the command to exit after the end of its output */
    TERM_MS = 500,  /* given to it to exit after SIGTERM */
    SHELL_FAILED = 127,
};

static const char prefix[] = "exec:";

struct command {
    hf__source head;
    hf__source_options options; /* without the strings */
    char *text;                 /* for the shell */
    pid_t pid;                  /* also its process group; 0: not running */
    hf__lines lines;            /* of its output */
    bool is_open;
    bool has_exited_well; /* with status 0; a last line without a newline may be left to read */
    bool has_ended;
    bool was_started;
    int64_t from;   /* ledgers below are skipped */
    int64_t wanted; /* the next ledger: a restart passes it as --from */
};

static void name_place(void *arg, const hf__line *line, char *where, size_t size)
{
    (void)arg;
    snprintf(where, size, "exec: line %" PRId64, line->number);
}

/*
 * Runs in the child, between fork and exec, where only system calls are safe: other threads may
 * have held locks at the fork.
 */
static void become_shell(const char *text, int output, pid_t parent)
{
    sigset_t none;
    int input = open("/dev/null", O_RDONLY);

    sigemptyset(&none);
    /*
     * In a process group of its own, Ctrl-C does not reach the command: we end it ourselves. A
     * pipeline ends as a whole.
     */
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM, 0L, 0L, 0L) != 0 ||
        getppid() != parent || input < 0 || dup2(input, STDIN_FILENO) < 0 ||
        dup2(output, STDOUT_FILENO) < 0)
        _exit(SHELL_FAILED);
    if (input > STDERR_FILENO)
        close(input);
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl("/bin/sh", "sh", "-c", text, (char *)NULL);
    _exit(SHELL_FAILED);
}

static hf_status fork_shell(struct command *command, const char *text, int *output, hf_error *err)
{
    int ends[2];
    pid_t parent = getpid();

    if (pipe2(ends, O_CLOEXEC) != 0)
        return hf__fail_errno(err, HF_SYSTEM, errno, "cannot start %s", command->head.name);
    pid_t pid = fork();
    if (pid == 0)
        become_shell(text, ends[1], parent);
    int reason = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return hf__fail_errno(err, HF_UNREACHABLE, reason, "cannot start %s", command->head.name);
    }
    setpgid(pid, pid); /* the child does it too; the group must exist before we kill it */
    command->pid = pid;
    *output = ends[0];
    return HF_OK;
}

static void note_restart(const struct command *command)
{
    char message[512];

    if (!command->was_started || command->options.log == NULL)
        return;
    snprintf(message, sizeof message, "%.400s is started again from ledger %" PRId64,
             command->head.name, command->wanted);
    command->options.log(command->options.log_arg, HF_LOG_INFO, message);
}

static hf_status start(struct command *command, hf_error *err)
{
    char *text = NULL;
    int output = -1;

    note_restart(command);
    if (asprintf(&text, "%s --from %" PRId64, command->text, command->wanted) < 0)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a command");
    hf_status status = fork_shell(command, text, &output, err);
    free(text);
    if (status != HF_OK)
        return status;
    command->was_started = true;
    command->is_open = true;
    status = hf__input_adopt(&command->lines.input, output, command->head.name,
                             command->options.stop_fd, err);
    hf__lines_begin(&command->lines, command->options.line_max);
    return status;
}

/* Waits for the exit without reaping it. False: the time is over, or stop_fd is readable. */
static bool await_exit(const struct command *command, int stop_fd, int wait_ms)
{
    int64_t deadline = hf__deadline(wait_ms);

    for (;;) {
        siginfo_t info = {0};
        int result = waitid(P_PID, (id_t)command->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((result == 0 && info.si_pid == command->pid) || (result != 0 && errno != EINTR))
            return true;
        if (hf__left_ms(deadline) == 0 || hf__input_wait(-1, stop_fd, STEP_MS, NULL) != HF_OK)
            return false;
    }
}

/*
 * Kills all that the command has started, then reaps it. In this order, because once it is reaped
 * the id of its group may be reused.
 */
static int reap(struct command *command)
{
    int ended = 0;

    kill(-command->pid, SIGKILL);
    while (waitpid(command->pid, &ended, 0) < 0 && errno == EINTR)
        continue;
    command->pid = 0;
    return ended;
}

static void stop(struct command *command)
{
    if (command->is_open)
        hf__lines_close(&command->lines);
    command->is_open = false;
    command->has_exited_well = false;
    if (command->pid == 0)
        return;
    kill(-command->pid, SIGTERM);
    (void)await_exit(command, -1, TERM_MS);
    (void)reap(command);
}

/* Its output has ended: HF_OK if it exited with status 0 and the output is whole. */
static hf_status judge_exit(struct command *command, hf_error *err)
{
    const char *name = command->head.name;

    if (!await_exit(command, command->options.stop_fd, EXIT_MS)) {
        hf_status status = hf__input_wait(-1, command->options.stop_fd, 0, err);
        return status != HF_OK
                   ? status
                   : hf__fail(err, HF_UNREACHABLE, "%s closed its output and did not exit", name);
    }
    int ended = reap(command);
    if (WIFSIGNALED(ended))
        return hf__fail(err, HF_UNREACHABLE, "%s was ended by signal %d", name, WTERMSIG(ended));
    if (WEXITSTATUS(ended) != 0)
        return hf__fail(err, HF_UNREACHABLE, "%s exited with status %d", name, WEXITSTATUS(ended));
    if (hf__input_is_cut(&command->lines.input))
        return hf__fail(err, HF_UNREACHABLE, "the packed output of %s ends in the middle", name);
    return HF_OK;
}

static hf_status read_line(struct command *command, const hf__line *line, hf__ledger **ledger,
                           hf__bad_ledger *bad, hf_error *err)
{
    hf__bad_ledger own = {0};
    hf__bad_ledger *kept = bad != NULL ? bad : &own;
    hf_status status =
        hf__lines_ledger(&command->lines, line, command->from, name_place, NULL, ledger, kept, err);
    int64_t sequence = status == HF_OK && *ledger != NULL ? (*ledger)->sequence
                       : status == HF_BAD_DATA            ? kept->sequence
                                                          : 0;

    if (sequence >= command->wanted)
        command->wanted = sequence + 1;
    hf__bad_ledger_free(&own);
    return status;
}

/* A last line without a newline counts only if the command exited with status 0. */
static hf_status next_line(struct command *command, hf__line *line, hf__bad_ledger *bad,
                           hf_error *err)
{
    char where[HF__WHERE_SIZE];
    hf_error reason = {0};
    hf_status status = hf__lines_next(&command->lines, command->has_exited_well, line, &reason);

    if (status == HF_BAD_DATA) {
        name_place(NULL, &(hf__line){.number = command->lines.number}, where, sizeof where);
        return hf__source_refuse(bad, where, 0, (hf__slice){NULL, 0}, &reason, err);
    }
    if (status != HF_OK && err != NULL)
        *err = reason;
    return status;
}

/*
 * Called twice at the end of the output: first to see how the command exited, and then, after a
 * last line without a newline, to end.
 */
static hf_status end_output(struct command *command, hf_error *err)
{
    if (!command->has_exited_well) {
        hf_status status = judge_exit(command, err);
        command->has_exited_well = status == HF_OK;
        if (status != HF_OK && status != HF_INTERRUPTED)
            stop(command);
        return status;
    }
    stop(command);
    if (command->options.follow)
        return hf__fail(err, HF_UNREACHABLE, "%s has no more ledgers at the moment",
                        command->head.name);
    command->has_ended = true;
    return HF_OK;
}

static hf_status next(hf__source *source, hf__ledger **ledger, hf__bad_ledger *bad, hf_error *err)
{
    struct command *command = (struct command *)source;
    hf_status status = HF_OK;

    *ledger = NULL;
    while (status == HF_OK && *ledger == NULL && !command->has_ended) {
        hf__line line = {0};
        if (!command->is_open)
            status = start(command, err);
        if (status == HF_OK)
            status = next_line(command, &line, bad, err);
        if (status != HF_OK)
            return status;
        status = line.text != NULL ? read_line(command, &line, ledger, bad, err)
                                   : end_output(command, err);
    }
    return status;
}

static hf_status extent(hf__source *source, int64_t *oldest, int64_t *latest, hf_error *err)
{
    (void)source;
    (void)err;
    *oldest = *latest = 0;
    return HF_OK;
}

static hf_status seek(hf__source *source, int64_t from, hf_error *err)
{
    struct command *command = (struct command *)source;

    (void)err;
    if (command->was_started && from == command->wanted)
        return HF_OK;
    stop(command);
    command->from = command->wanted = from;
    command->has_ended = false;
    return HF_OK;
}

static void close_command(hf__source *source)
{
    struct command *command = (struct command *)source;

    stop(command);
    free(command->text);
    free(command->head.name);
    free(command);
}

static const hf__source_ops command_ops = {
    .extent = extent,
    .seek = seek,
    .next = next,
    .close = close_command,
};

/* Only the program's name: its arguments, and NAME=VALUE before it, may be secret. */
static char *name_of(const char *text)
{
    char *name = NULL;
    size_t size = 0;

    do {
        text += size + strspn(text + size, " \t");
        size = strcspn(text, " \t");
    } while (memchr(text, '=', size) != NULL);
    return asprintf(&name, "%s%.*s", prefix, (int)size, text) < 0 ? NULL : name;
}

hf_status hf__source_exec(const hf__source_options *options, hf__source **source, hf_error *err)
{
    const char *text = options->spec;

    *source = NULL;
    if (strncmp(text, prefix, strlen(prefix)) == 0)
        text += strlen(prefix);
    if (text[strspn(text, " \t")] == '\0') {
        hf_status status = hf__fail(err, HF_INVALID, "exec: has no command");
        hf__hint(err, "for example exec:'my-exporter --network testnet'");
        return status;
    }
    struct command *command = calloc(1, sizeof *command);
    if (command == NULL)
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a source");
    command->head.ops = &command_ops;
    command->options = *options;
    command->options.spec = command->options.network = NULL;
    command->wanted = 1;
    command->text = strdup(text);
    command->head.name = name_of(text);
    if (command->text == NULL || command->head.name == NULL) {
        close_command(&command->head);
        return hf__fail(err, HF_NO_MEMORY, "out of memory for a source");
    }
    *source = &command->head;
    return HF_OK;
}
