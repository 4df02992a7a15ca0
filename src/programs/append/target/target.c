#include "programs/append/target/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

enum { KILL_MS = 10000, TELL_EVERY_MS = 100 };

/* ---- Names and texts ------------------------------------------------------------------------- */

static void quote(hf__buf *out, const char *text, char mark)
{
    hf__buf_add(out, &mark, 1);
    for (; *text != '\0'; text++) {
        if (*text == mark || *text == '\\')
            hf__buf_add(out, "\\", 1);
        hf__buf_add(out, text, 1);
    }
    hf__buf_add(out, &mark, 1);
}

void hf__quote_name(hf__buf *out, const char *name)
{
    quote(out, name, '`');
}

void hf__quote_table(hf__buf *out, const char *database, const char *table)
{
    hf__quote_name(out, database);
    hf__buf_add(out, ".", 1);
    hf__quote_name(out, table);
}

void hf__quote_text(hf__buf *out, const char *text)
{
    quote(out, text, '\'');
}

void hf__put_table_condition(hf__buf *out, const char *database, const char *table)
{
    hf__buf_puts(out, "database = ");
    hf__quote_text(out, database);
    hf__buf_puts(out, " AND table = ");
    hf__quote_text(out, table);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static char unescaped(char c)
{
    static const char from[] = "tnrb0f", to[] = "\t\n\r\b\0\f";
    const char *at = strchr(from, c);

    return c != '\0' && at != NULL ? to[at - from] : c;
}

/* Works in place. */
static void unescape(char *cell, const char *end)
{
    char *out = cell;

    for (const char *at = cell; at < end; at++)
        *out++ = *at == '\\' && at + 1 < end ? unescaped(*++at) : *at;
    *out = '\0';
}

static size_t count(const char *text, size_t size, char wanted)
{
    size_t found = 0;

    for (const char *at = text; (at = memchr(at, wanted, size - (size_t)(at - text))) != NULL; at++)
        found++;
    return found;
}

static bool take_row(hf__grid *grid, char *row, const char *end)
{
    for (size_t column = 0; column < grid->columns; column++) {
        char *cell_end = memchr(row, '\t', (size_t)(end - row));
        bool is_last = cell_end == NULL;
        if (is_last != (column + 1 == grid->columns))
            return false;
        if (is_last)
            cell_end = row + (end - row);
        grid->cells[grid->rows * grid->columns + column] = row;
        unescape(row, cell_end);
        row = is_last ? row : cell_end + 1;
    }
    grid->rows++;
    return true;
}

hf_status hf__grid_read(char *text, size_t size, hf__grid *grid, hf_error *err)
{
    size_t lines = size > 0 ? count(text, size, '\n') : 0;
    char *at = text;

    *grid = (hf__grid){.text = text};
    if (size > 0 && (text[size - 1] != '\n' || memchr(text, '\0', size) != NULL))
        return hf__fail(err, HF_BAD_DATA, "the answer is no table of texts");
    if (lines == 0)
        return HF_OK;
    grid->columns = count(text, (size_t)((char *)memchr(text, '\n', size) - text), '\t') + 1;
    grid->cells = calloc(lines * grid->columns, sizeof *grid->cells);
    if (grid->cells == NULL)
        return hf__no_memory(err);
    while (at < text + size) {
        char *end = memchr(at, '\n', size - (size_t)(at - text));
        if (end == NULL || !take_row(grid, at, end))
            return hf__fail(err, HF_BAD_DATA, "the answer has rows of different width");
        at = end + 1;
    }
    return HF_OK;
}

void hf__grid_free(hf__grid *grid)
{
    free(grid->text);
    free(grid->cells);
    *grid = (hf__grid){0};
}

const char *hf__grid_at(const hf__grid *grid, size_t row, size_t column)
{
    return row < grid->rows && column < grid->columns ? grid->cells[row * grid->columns + column]
                                                      : "";
}

int64_t hf__grid_number(const hf__grid *grid, size_t row, size_t column)
{
    return strtoll(hf__grid_at(grid, row, column), NULL, 10);
}

/* ---- What ClickHouse says -------------------------------------------------------------------- */

/* Old: "Code: 27, e.displayText() = DB::Exception: …". New: "Code: 27. DB::Exception: …". */
int hf__exception_code(const char *text)
{
    static const char library[] = "Poco::Exception. ", head[] = "Code: ";
    char *end = NULL;
    const char *at =
        strncmp(text, library, sizeof library - 1) == 0 ? text + sizeof library - 1 : text;

    if (strncmp(at, head, sizeof head - 1) != 0)
        return 0;
    long code = strtol(at + sizeof head - 1, &end, 10);
    return code > 0 && code < 100000 && (*end == ',' || *end == '.') &&
                   strstr(text, "Exception") != NULL
               ? (int)code
               : 0;
}

/* Finds the sentence in an exception, without what ClickHouse puts around it. */
static void find_sentence(const char *text, const char **start, size_t *size)
{
    static const char mark[] = "Exception: "; /* DB::Exception, DB::ErrnoException */
    static const char *const ends[] = {", e.what() = ", " (version ", ", Stack trace"};
    const char *at = strstr(text, mark);

    *start = at != NULL ? at + sizeof mark - 1 : text;
    *size = strlen(*start);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = strstr(*start, ends[i]);
        if (end != NULL && (size_t)(end - *start) < *size)
            *size = (size_t)(end - *start);
    }
    const char *details = strstr(*start, "\n\nRow ");
    if (details != NULL && (size_t)(details - *start) < *size)
        *size = (size_t)(details - *start);
    while (*size > 0 && strchr(" \n:", (*start)[*size - 1]) != NULL)
        (*size)--;
}

static int64_t find_row(const char *text)
{
    const char *at = strstr(text, "(at row ");

    return at != NULL ? strtoll(at + 8, NULL, 10) : 0;
}

static hf_status status_of(int code, bool during_rows, const char *text)
{
    static const int of_data[] = {6,  26, 27, 32,  33,  34,  38,  41,  43,  50,  53,
                                  62, 69, 72, 117, 128, 130, 131, 321, 349, 368, 467};
    static const int of_setup[] = {HF__CODE_UNKNOWN_TABLE,
                                   HF__CODE_UNKNOWN_DATABASE,
                                   HF__CODE_READONLY,
                                   HF__CODE_ACCESS_DENIED,
                                   192,
                                   193,
                                   194,
                                   195,
                                   115,
                                   291,
                                   372,
                                   373,
                                   516};

    if (during_rows && (strstr(text, "(at row ") != NULL ||
                        (code == HF__CODE_POCO && strstr(text, "Too large string") != NULL)))
        return HF_BAD_DATA;
    for (size_t i = 0; during_rows && i < sizeof of_data / sizeof *of_data; i++)
        if (code == of_data[i])
            return HF_BAD_DATA;
    for (size_t i = 0; i < sizeof of_setup / sizeof *of_setup; i++)
        if (code == of_setup[i])
            return HF_CONFIG;
    return HF_DATABASE;
}

static void give_hint(const hf__target *target, const hf__statement *statement, int code,
                      const char *text, hf_error *err)
{
    const char *user = target->user[0] != '\0' ? target->user : "default";

    if (code == 192 || code == 193 || code == 194 || code == 516)
        hf__hint(err, "give the password in the URL, or in a file with --password-file");
    else if (code == HF__CODE_READONLY)
        hf__hint(err, "the profile of the user '%s' is readonly: it must be able to %s", user,
                 statement->what);
    else if (code == HF__CODE_ACCESS_DENIED)
        hf__hint(
            err,
            "let the user '%s' %s: the grant that lacks is named above; see holdfast-append(1)",
            user, statement->what);
    else if (code == 243 || strstr(text, "No space left") != NULL)
        hf__hint(err, "the server's disk is full: make room, then repeat");
    else if (code == 252)
        hf__hint(err, "it has too many parts: let merges catch up, or send larger blocks");
    else if (code == 62 || code == 372)
        hf__hint(err, "see the statement that was given");
}

hf_status hf__target_refused(hf__target *target, const hf__statement *statement, const char *text,
                             size_t size, bool during_rows, hf_error *err)
{
    char shown[700];
    const char *sentence = text;
    size_t length = size;

    target->fault.code = hf__exception_code(text);
    target->fault.row = find_row(text);
    if (target->fault.code != 0)
        find_sentence(text, &sentence, &length);
    hf__show(shown, sizeof shown, sentence, length);
    hf_status status = status_of(target->fault.code, during_rows, text);
    if (target->fault.code == 0)
        return hf__fail(err, HF_DATABASE, "%s: cannot %s: it answered '%s'", target->name,
                        statement->what, shown);
    hf__set_error(err, status, "%s: cannot %s: ClickHouse (code %d): %s", target->name,
                  statement->what, target->fault.code, shown);
    if (status != HF_BAD_DATA)
        give_hint(target, statement, target->fault.code, text, err);
    return status;
}

/* ---- Targets --------------------------------------------------------------------------------- */

hf_status hf__target_open(const hf__target_options *options, hf__target **target, hf_error *err)
{
    char shown[96];

    if (strncmp(options->url, "chdb:", 5) == 0)
        return hf__chdb_open(options, target, err);
    if (strncmp(options->url, "clickhouse+http://", 18) == 0 ||
        strncmp(options->url, "clickhouse+https://", 19) == 0)
        return hf__http_open(options, target, err);
    const char *rest = strstr(options->url, "://"); /* a password may follow: show no more */
    hf_status status = hf__fail(
        err, HF_INVALID, "'%s…' is no target",
        hf__show(shown, sizeof shown, options->url,
                 rest != NULL ? (size_t)(rest - options->url) : strcspn(options->url, ":@")));
    hf__hint(err,
             "clickhouse+http://user@host:8123/database, clickhouse+https://…, or chdb:FOLDER");
    return status;
}

void hf__target_close(hf__target *target)
{
    if (target != NULL)
        target->ops->close(target);
}

hf_status hf__target_query(hf__target *target, const hf__statement *statement, hf__grid *rows,
                           hf_error *err)
{
    hf__buf answer = {0};
    char shown[96];

    target->fault = (hf__fault){0};
    hf_status status = target->ops->query(target, statement, &answer, err);
    if (status == HF_OK && answer.broken)
        status = hf__no_memory(err);
    if (status == HF_OK && rows == NULL && answer.length > 0)
        status =
            hf__fail(err, HF_DATABASE, "%s: cannot %s: it answered '%s'", target->name,
                     statement->what, hf__show(shown, sizeof shown, answer.data, answer.length));
    if (status != HF_OK || rows == NULL) {
        hf__buf_free(&answer);
        return status;
    }
    status = hf__grid_read(answer.data, answer.length, rows, err);
    if (status != HF_OK && err != NULL) {
        hf_error plain = *err;
        status = hf__fail(err, plain.code, "%s: cannot %s: %s", target->name, statement->what,
                          plain.message);
    }
    return status;
}

hf_status hf__target_ask(hf__target *target, const hf__statement *statement, hf__buf *sql,
                         hf__grid *rows, hf_error *err)
{
    hf__statement with_text = *statement;
    hf_status status = HF_OK;

    with_text.sql = sql->data;
    status = sql->broken ? hf__no_memory(err) : hf__target_query(target, &with_text, rows, err);
    hf__buf_free(sql);
    return status;
}

hf_status hf__target_kill(hf__target *target, const char *query_id, const char *what, hf_error *err)
{
    const hf__statement kill = {.what = what, .limit_ms = KILL_MS};
    hf__buf sql = {0};
    hf__grid killed = {0};

    hf__buf_puts(&sql, "KILL QUERY WHERE query_id = ");
    hf__quote_text(&sql, query_id);
    hf__buf_puts(&sql, " SYNC");
    hf_status status = hf__target_ask(target, &kill, &sql, &killed, err);
    hf__grid_free(&killed);
    return status;
}

void hf__flow_tell(hf__flow *flow, const hf__rows_input *input)
{
    int64_t now = hf__now_ms();

    if (flow == NULL || now - flow->told_ms < TELL_EVERY_MS)
        return;
    flow->told_ms = now;
    flow->tell(flow->arg, input);
}
