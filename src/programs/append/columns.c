#include "programs/append/columns.h"

#include <poll.h>
#include <string.h>

#include "programs/append/quote.h"
#include "programs/append/settings.h"

struct reader {
    const char *at, *end;
    char delimiter;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void read_quoted(struct reader *reader, hf__buf *name)
{
    const char quote = *reader->at++;

    while (reader->at < reader->end) {
        char c = *reader->at++;
        bool is_twofold = reader->at < reader->end && *reader->at == quote;
        if (c == quote && !is_twofold)
            return;
        if (c == quote)
            reader->at++;
        hf__buf_add(name, &c, 1);
    }
}

static void read_bare(struct reader *reader, hf__buf *name)
{
    const char *from = reader->at;

    while (reader->at < reader->end && *reader->at != reader->delimiter)
        reader->at++;
    const char *to = reader->at;
    while (to > from && is_blank(to[-1]))
        to--;
    hf__buf_add(name, from, (size_t)(to - from));
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at) && *reader->at != reader->delimiter)
        reader->at++;
}

static hf_status read_name(struct reader *reader, hf__buf *name, hf_error *err)
{
    hf__buf_clear(name);
    skip_blanks(reader);
    if (reader->at < reader->end && (*reader->at == '"' || *reader->at == '\''))
        read_quoted(reader, name);
    else
        read_bare(reader, name);
    skip_blanks(reader);
    if (name->broken)
        return hf__fail(err, HF_NO_MEMORY, "out of memory");
    if (memchr(name->data, '\0', name->length) != NULL)
        return hf__fail(err, HF_BAD_DATA, "the header has a NUL byte");
    if (reader->at < reader->end && *reader->at != reader->delimiter)
        return hf__fail(err, HF_BAD_DATA, "the header has more than a quoted name at '%s'",
                        name->data);
    return HF_OK;
}

/* The mark that some programs begin a file in UTF-8 with. */
static void skip_mark(struct reader *reader)
{
    if (reader->end - reader->at >= 3 && memcmp(reader->at, "\xef\xbb\xbf", 3) == 0)
        reader->at += 3;
}

hf_status hf__columns_parse(const char *line, size_t size, char delimiter, hf__buf *out,
                            hf_error *err)
{
    struct reader reader = {.at = line, .end = line + size, .delimiter = delimiter};
    const char *between = " (";
    hf_status status = HF_OK;
    hf__buf name = {0};

    while (reader.end > reader.at && (reader.end[-1] == '\n' || reader.end[-1] == '\r'))
        reader.end--;
    skip_mark(&reader);
    if (reader.at == reader.end)
        return HF_OK;
    for (bool more = true; more && status == HF_OK; between = ", ") {
        status = read_name(&reader, &name, err);
        hf__buf_puts(out, between);
        hf__quote_name(out, name.data != NULL ? name.data : "");
        more = reader.at < reader.end;
        if (more)
            reader.at++;
    }
    hf__buf_puts(out, ")");
    hf__buf_free(&name);
    return status;
}

/* ---- of an input ----------------------------------------------------------------------------------------- */

static hf_status wait_for_header(hf__work *work, hf__input *input, hf_error *err)
{
    for (;;) {
        bool wait = false;
        hf_status status = hf__input_read_header(input, &wait, err);
        if (status != HF_OK || !wait)
            return status;
        struct pollfd fds[] = {{.fd = hf__input_fd(input), .events = POLLIN},
                               {.fd = work->halt->fd, .events = POLLIN}};
        (void)poll(fds, 2, -1);
        status = hf__work_check(work, err);
        if (status != HF_OK)
            return status;
    }
}

static char delimiter_of(const hf__work *work)
{
    const char *value = hf__settings_value(&work->settings, "format_csv_delimiter");

    return value != NULL && value[0] != '\0' ? value[0] : ',';
}

hf_status hf__columns_add(hf__work *work, hf__input *input, hf__buf *out, hf_error *err)
{
    size_t size = 0;

    if (!work->options->format->has_header || work->target->is_embedded)
        return HF_OK;
    hf_status status = wait_for_header(work, input, err);
    if (status != HF_OK)
        return status;
    const char *header = hf__input_header(input, &size);
    return hf__columns_parse(header, size, delimiter_of(work), out, err);
}
