#include "cli/report.h"

#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/print.h"

bool wants_colour(int fd)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return (no_colour == NULL || no_colour[0] == '\0') && isatty(fd) && terminal != NULL &&
           strcmp(terminal, "dumb") != 0;
}

struct report report_to_stderr(bool json)
{
    return (struct report){.json = json, .colour = !json && wants_colour(STDERR_FILENO)};
}

static int exit_code_of(hf_status status)
{
    switch (status) {
    case HF_OK: return EXIT_OK;
    case HF_INVALID: return EXIT_USAGE;
    case HF_BAD_DATA: return EXIT_BAD_DATA;
    case HF_UNREACHABLE: return EXIT_UNREACHABLE;
    case HF_CONFIG:
    case HF_NO_SCHEMA:
    case HF_COLLISION:
    case HF_SLOTS: return EXIT_CONFIG;
    case HF_NOT_ACQUIRED:
    case HF_DEADLOCK:
    case HF_EXHAUSTED: return EXIT_NOT_ACQUIRED;
    case HF_CURSOR: return EXIT_FINDINGS;
    case HF_IN_DOUBT: return EXIT_IN_DOUBT;
    case HF_LOST: return EXIT_LOST;
    default: return EXIT_FAILED;
    }
}

/* One write for the whole text, so that it does not mix with lines of other processes. */
static void put(hf__buf *text)
{
    if (!text->broken && text->length > 0)
        fwrite(text->data, 1, text->length, stderr);
    hf__buf_free(text);
}

static void add_line(hf__buf *text, const struct report *report, const char *colour,
                     const char *word, const char *line)
{
    if (report->colour)
        hf__buf_printf(text, "\033[%sm%s:\033[0m %s\n", colour, word, line);
    else
        hf__buf_printf(text, "%s: %s\n", word, line);
}

static void put_error_as_json(const hf_error *err, const char *detail)
{
    hf__json json = {0};

    hf__json_begin_object(&json, NULL);
    hf__json_begin_object(&json, "error");
    hf__json_put_string(&json, "status", hf_status_name(err->code));
    hf__json_put_string(&json, "message", err->message);
    if (detail != NULL)
        hf__json_put_string(&json, "detail", detail);
    hf__json_put_text(&json, "hint", err->hint);
    hf__json_put_text(&json, "sqlstate", err->sqlstate);
    hf__json_end_object(&json);
    hf__json_end_object(&json);
    (void)print_document(&json, stderr);
}

int report_detailed_error(const struct report *report, const hf_error *err, const char *detail)
{
    hf__buf text = {0};

    if (report->json) {
        put_error_as_json(err, detail);
        return exit_code_of(err->code);
    }
    add_line(&text, report, "1;31", "error", err->message);
    if (detail != NULL)
        add_line(&text, report, "1", "detail", detail);
    if (err->hint[0] != '\0')
        add_line(&text, report, "36", "hint", err->hint);
    put(&text);
    return exit_code_of(err->code);
}

int report_error(const struct report *report, const hf_error *err)
{
    return report_detailed_error(report, err, NULL);
}

static void put_line(const struct report *report, const char *colour, const char *word,
                     const char *line)
{
    hf__buf text = {0};
    hf__json json = {0};

    if (!report->json) {
        add_line(&text, report, colour, word, line);
        put(&text);
        return;
    }
    hf__json_begin_object(&json, NULL);
    hf__json_put_string(&json, word, line);
    hf__json_end_object(&json);
    (void)print_document(&json, stderr);
}

static void put_formatted(const struct report *report, const char *colour, const char *word,
                          const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void put_formatted(const struct report *report, const char *colour, const char *word,
                          const char *format, va_list args)
{
    char line[sizeof((hf_error *)0)->message];

    vsnprintf(line, sizeof line, format, args);
    put_line(report, colour, word, line);
}

void report_note(const struct report *report, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_formatted(report, "1", "note", format, args);
    va_end(args);
}

void report_warning(const struct report *report, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_formatted(report, "1;33", "warning", format, args);
    va_end(args);
}

int report_usage(const struct report *report, const struct command *command, const char *format,
                 ...)
{
    hf_error err = {.code = HF_INVALID};
    va_list args;

    va_start(args, format);
    vsnprintf(err.message, sizeof err.message, format, args);
    va_end(args);
    if (command != NULL)
        hf__hint(&err, "see 'holdfast %s --help'", command->name);
    else
        hf__hint(&err, "see 'holdfast --help'");
    return report_error(report, &err);
}

bool report_would_block(void)
{
    struct pollfd errors = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&errors, 1, 0) == 0;
}

void report_log(void *arg, hf_log_level level, const char *message)
{
    if (level >= HF_LOG_WARNING && !report_would_block())
        report_warning(arg, "%s", message);
}

/* ---- what may not be shown ------------------------------------------------------------------- */

static const char mask[] = "***";

/* Where the password begins in what follows "://", or NULL. *end is the '@' behind it. */
static const char *authority_password(const char *authority, const char **end)
{
    /*
     * A password may contain an unescaped '/' or '@' by mistake, so everything up to the last '@'
     * of the word counts as user and password.
     */
    size_t length = strcspn(authority, " \t\n");
    const char *at = memrchr(authority, '@', length);
    const char *colon = at != NULL ? memchr(authority, ':', (size_t)(at - authority)) : NULL;

    *end = at;
    return colon != NULL ? colon + 1 : NULL;
}

/*
 * If text begins with "password=" or "password =", what follows, else NULL. The caller tries every
 * byte, so this finds sslpassword= too.
 */
static const char *parameter_value(const char *text)
{
    static const char name[] = "password";

    if (strncasecmp(text, name, sizeof name - 1) != 0)
        return NULL;
    text += sizeof name - 1;
    text += strspn(text, " \t");
    if (*text != '=')
        return NULL;
    text++;
    return text + strspn(text, " \t");
}

static const char *parameter_end(const char *value)
{
    if (*value != '\'')
        return value + strcspn(value, " \t\n&");
    for (value++; *value != '\0' && *value != '\''; value++)
        if (*value == '\\' && value[1] != '\0')
            value++;
    return *value == '\'' ? value + 1 : value;
}

/*
 * The next part that may be a password: in scheme://user:password@host, in a password=… parameter,
 * and in password = '…' of a conninfo. NULL: there is none.
 */
static const char *find_password(const char *text, const char **end)
{
    const char *start = NULL;

    for (; *text != '\0' && start == NULL; text++) {
        if (strncmp(text, "://", 3) == 0)
            start = authority_password(text + 3, end);
        else if ((start = parameter_value(text)) != NULL)
            *end = parameter_end(start);
    }
    return start;
}

/* Copies text with *** for passwords. The caller frees the copy; NULL without memory. */
static char *redact_passwords(const char *text)
{
    hf__buf out = {0};
    const char *start = NULL;
    const char *end = NULL;

    hf__buf_puts(&out, "");
    while ((start = find_password(text, &end)) != NULL) {
        hf__buf_add(&out, text, (size_t)(start - text));
        hf__buf_puts(&out, mask);
        text = end;
    }
    hf__buf_puts(&out, text);
    if (out.broken) {
        hf__buf_free(&out);
        return NULL;
    }
    return out.data;
}

char **hide_passwords(int argc, char **argv)
{
    size_t size = ((size_t)argc + 1) * sizeof(char *);

    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char **copies = malloc(size);
    if (copies == NULL)
        return argv;
    char *at = (char *)(copies + argc + 1);
    for (int i = 0; i < argc; i++) {
        const char *end = NULL;
        const char *start = argv[i];
        copies[i] = at;
        at = stpcpy(at, argv[i]) + 1;
        while ((start = find_password(start, &end)) != NULL) {
            memset(argv[i] + (start - argv[i]), '*', (size_t)(end - start));
            start = end;
        }
    }
    copies[argc] = NULL;
    return copies;
}

const char *show_argument(char out[SHOWN_MAX], const char *argument)
{
    char *redacted = redact_passwords(argument);

    if (redacted == NULL)
        return "(out of memory)";
    hf__show(out, SHOWN_MAX, redacted, strlen(redacted));
    free(redacted);
    return out;
}
