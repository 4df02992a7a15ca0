#include "programs/holdfast/sql_script.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "programs/holdfast/sql_lex.h"

enum { LEADING_WORDS = 3, SHOWN_NAME_MAX = 64 };

struct word {
    size_t at, size;
};

/* The statement that is being read. */
struct draft {
    bool started; /* it has more than white space */
    bool solid;   /* it has more than comments */
    size_t start;
    size_t copied; /* the script up to here is in sql, with its parameters */
    hf__buf sql;
    struct sql_statement statement;
    struct word words[LEADING_WORDS];
    size_t word_count;
    size_t depth;     /* of parentheses: in them, semicolons separate the actions of a rule */
    bool in_body;     /* of SQLite's CREATE TRIGGER, whose statements end by semicolons */
    bool after_end;   /* of such a statement: END closes the body here */
    size_t stream_at; /* where STDIN or STDOUT is */
    bool has_stream;
};

struct reader {
    struct sql_cursor cursor;
    bool sqlite; /* reads as SQLite, not as PostgreSQL */
    struct sql_variable *variables;
    size_t variable_count;
    struct sql_script *script;
    struct draft draft;
    hf_error *err;
};

static hf_status out_of_memory(const struct reader *reader)
{
    return hf__no_memory(reader->err);
}

/* open is what a skip returned: NULL, or what is not closed. */
static hf_status check_closed(const struct reader *reader, size_t start, const char *open)
{
    if (open == NULL)
        return HF_OK;
    reader->script->wrong_at = start;
    return hf__fail(reader->err, HF_INVALID, "%s is not closed", open);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static bool word_is(const struct reader *reader, const struct word *word, const char *keyword)
{
    return word->size == strlen(keyword) &&
           strncasecmp(reader->cursor.text + word->at, keyword, word->size) == 0;
}

static bool leads_with(const struct reader *reader, size_t index, const char *keyword)
{
    const struct draft *draft = &reader->draft;

    return index < draft->word_count && word_is(reader, &draft->words[index], keyword);
}

static bool creates_trigger(const struct reader *reader)
{
    bool temporary = leads_with(reader, 1, "temp") || leads_with(reader, 1, "temporary");

    return reader->sqlite && leads_with(reader, 0, "create") &&
           leads_with(reader, temporary ? 2 : 1, "trigger");
}

static void note_word(struct reader *reader, struct word word)
{
    struct draft *draft = &reader->draft;

    if (draft->word_count < LEADING_WORDS)
        draft->words[draft->word_count++] = word;
    if (creates_trigger(reader) && word_is(reader, &word, "begin"))
        draft->in_body = true;
    else if (draft->after_end && word_is(reader, &word, "end"))
        draft->in_body = false;
    draft->after_end = false;
    if (word_is(reader, &word, "stdin") || word_is(reader, &word, "stdout")) {
        draft->has_stream = true;
        draft->stream_at = word.at;
    }
}

static hf_status read_word(struct reader *reader)
{
    struct word word = {.at = reader->cursor.at};

    while (sql_continues_word(sql_peek(&reader->cursor, 0)))
        reader->cursor.at++;
    word.size = reader->cursor.at - word.at;
    if (!reader->sqlite && sql_peek(&reader->cursor, 0) == '\'' && word_is(reader, &word, "e"))
        return check_closed(reader, word.at, sql_skip_escape_string(&reader->cursor));
    note_word(reader, word);
    return HF_OK;
}

/* ROLLBACK [WORK | TRANSACTION] TO does no harm: it stays inside of the transaction. */
static bool is_rollback_to(const struct reader *reader)
{
    size_t next = leads_with(reader, 1, "work") || leads_with(reader, 1, "transaction") ? 2 : 1;

    return leads_with(reader, next, "to");
}

static bool ends_transaction(const struct reader *reader)
{
    static const char *const alone[] = {"begin", "commit", "end", "abort"};

    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        if (leads_with(reader, 0, alone[i]))
            return true;
    if (leads_with(reader, 0, "rollback"))
        return !is_rollback_to(reader);
    return (leads_with(reader, 0, "start") || leads_with(reader, 0, "prepare")) &&
           leads_with(reader, 1, "transaction");
}

static bool is_write(const struct reader *reader)
{
    return leads_with(reader, 0, "insert") || leads_with(reader, 0, "update") ||
           leads_with(reader, 0, "delete") || leads_with(reader, 0, "merge");
}

static hf_status refuse_transaction_control(const struct reader *reader)
{
    const struct word *word = &reader->draft.words[0];
    hf_status status;

    reader->script->wrong_at = word->at;
    status =
        hf__fail(reader->err, HF_INVALID, "%.*s has no place here: the script is one transaction",
                 (int)word->size, reader->cursor.text + word->at);
    hf__hint(reader->err, leads_with(reader, 0, "end")
                              ? "leave it out; a body in BEGIN ATOMIC ... END must be in $$ instead"
                              : "leave it out; Holdfast begins, commits and retries it");
    return status;
}

static hf_status refuse_stream(const struct reader *reader)
{
    hf_status status;

    reader->script->wrong_at = reader->draft.stream_at;
    status = hf__fail(reader->err, HF_INVALID, "COPY cannot read from or write to the client here");
    hf__hint(reader->err, "use INSERT and SELECT");
    return status;
}

static hf_status check_statement(const struct reader *reader)
{
    if (ends_transaction(reader))
        return refuse_transaction_control(reader);
    if (leads_with(reader, 0, "copy") && reader->draft.has_stream)
        return refuse_stream(reader);
    return HF_OK;
}

/* ---- Variables ------------------------------------------------------------------------------- */

bool sql_variable_read(const char *assignment, struct sql_variable *variable)
{
    const char *equals = strchr(assignment, '=');

    if (equals == NULL || !sql_starts_name(assignment[0]))
        return false;
    for (const char *c = assignment; c < equals; c++)
        if (!sql_continues_name(*c))
            return false;
    *variable = (struct sql_variable){
        .name = assignment,
        .name_size = (size_t)(equals - assignment),
        .value = equals + 1,
    };
    return true;
}

static struct sql_variable *find_variable(const struct reader *reader, const char *name,
                                          size_t size)
{
    for (size_t i = 0; i < reader->variable_count; i++) {
        struct sql_variable *variable = &reader->variables[i];
        if (variable->name_size == size && memcmp(variable->name, name, size) == 0)
            return variable;
    }
    return NULL;
}

static hf_status refuse_undefined(const struct reader *reader, const char *name, size_t size)
{
    char shown[SHOWN_NAME_MAX];
    hf_status status;

    reader->script->wrong_at = reader->cursor.at;
    hf__show(shown, sizeof shown, name, size);
    status = hf__fail(reader->err, HF_INVALID, "the variable :%s has no value", shown);
    hf__hint(reader->err, "give -v %s=VALUE; if it is no variable, put a space behind the colon",
             shown);
    return status;
}

static bool grow_parameters(struct sql_statement *statement)
{
    size_t wanted = statement->count + 1;
    hf_value *values = reallocarray(statement->values, wanted, sizeof *values);

    if (values == NULL)
        return false;
    statement->values = values;
    struct sql_parameter *parameters =
        reallocarray(statement->parameters, wanted, sizeof *parameters);
    if (parameters == NULL)
        return false;
    statement->parameters = parameters;
    return true;
}

static void copy_up_to(struct reader *reader, size_t end)
{
    struct draft *draft = &reader->draft;

    hf__buf_add(&draft->sql, reader->cursor.text + draft->copied, end - draft->copied);
    draft->copied = end;
}

/* Each place gets a parameter of its own, so that PostgreSQL finds its type from the place. */
static hf_status add_parameter(struct reader *reader, const struct sql_variable *variable)
{
    struct draft *draft = &reader->draft;
    struct sql_statement *statement = &draft->statement;
    struct sql_parameter parameter = {
        .script_at = reader->cursor.at,
        .script_size = 1 + variable->name_size,
    };

    if (!grow_parameters(statement))
        return out_of_memory(reader);
    copy_up_to(reader, reader->cursor.at);
    parameter.sent_at = draft->sql.length;
    hf__buf_printf(&draft->sql, "$%zu", statement->count + 1);
    parameter.sent_size = draft->sql.length - parameter.sent_at;
    statement->values[statement->count] = HF_TEXT(variable->value);
    statement->parameters[statement->count++] = parameter;
    reader->cursor.at += parameter.script_size;
    draft->copied = reader->cursor.at;
    return HF_OK;
}

/* But not '::type', ':=', or 'from:to' in the bounds of an array slice. */
static bool at_variable(const struct reader *reader)
{
    char before = reader->cursor.at > 0 ? reader->cursor.text[reader->cursor.at - 1] : '\0';

    return sql_starts_name(sql_peek(&reader->cursor, 1)) && before != ':' &&
           !sql_continues_word(before);
}

static hf_status read_colon(struct reader *reader)
{
    if (!at_variable(reader)) {
        reader->cursor.at += sql_at_pair(&reader->cursor, ':', ':') ? 2 : 1;
        return HF_OK;
    }
    const char *name = reader->cursor.text + reader->cursor.at + 1;
    size_t size = sql_name_size(&reader->cursor, 1);
    struct sql_variable *variable = find_variable(reader, name, size);

    if (variable == NULL)
        return refuse_undefined(reader, name, size);
    variable->used = true;
    return add_parameter(reader, variable);
}

static hf_status refuse_number(const struct reader *reader)
{
    hf_status status;

    reader->script->wrong_at = reader->cursor.at;
    status = hf__fail(reader->err, HF_INVALID, "$%.*s: parameters have names here",
                      (int)sql_name_size(&reader->cursor, 1),
                      reader->cursor.text + reader->cursor.at + 1);
    hf__hint(reader->err, "write :name and give -v name=VALUE");
    return status;
}

static hf_status read_dollar(struct reader *reader)
{
    size_t start = reader->cursor.at;

    if (sql_is_digit(sql_peek(&reader->cursor, 1)))
        return refuse_number(reader);

    size_t tag_size = 1 + sql_name_size(&reader->cursor, 1);
    if (!reader->sqlite && sql_peek(&reader->cursor, tag_size) == '$')
        return check_closed(reader, start, sql_skip_dollar_quoted(&reader->cursor, tag_size + 1));
    reader->cursor.at++;
    return HF_OK;
}

/* ---- Statements ------------------------------------------------------------------------------ */

static void free_statement(struct sql_statement *statement)
{
    free(statement->sql);
    free(statement->values);
    free(statement->parameters);
}

static void start_anew(struct reader *reader)
{
    hf__buf_free(&reader->draft.sql);
    free_statement(&reader->draft.statement);
    reader->draft = (struct draft){0};
}

static hf_status keep_statement(struct reader *reader)
{
    struct draft *draft = &reader->draft;
    struct sql_script *script = reader->script;
    struct sql_statement *statements =
        reallocarray(script->statements, script->count + 1, sizeof *statements);

    if (statements == NULL || draft->sql.broken) {
        script->statements = statements != NULL ? statements : script->statements;
        return out_of_memory(reader);
    }
    script->statements = statements;
    draft->statement.sql = draft->sql.data;
    draft->sql = (hf__buf){0};
    statements[script->count++] = draft->statement;
    draft->statement = (struct sql_statement){0};
    return HF_OK;
}

/* Without white space at the end, so that an error there points to text. */
static size_t end_of_text(const struct reader *reader)
{
    size_t end = reader->cursor.at;

    while (end > reader->draft.copied && sql_is_space(reader->cursor.text[end - 1]))
        end--;
    return end;
}

static hf_status end_statement(struct reader *reader)
{
    struct draft *draft = &reader->draft;
    hf_status status = HF_OK;

    if (draft->solid) {
        copy_up_to(reader, end_of_text(reader));
        draft->statement.start = draft->start;
        draft->statement.writes = is_write(reader);
        status = check_statement(reader);
    }
    if (status == HF_OK && draft->solid)
        status = keep_statement(reader);
    start_anew(reader);
    return status;
}

static void start_statement(struct draft *draft, size_t at)
{
    if (!draft->started) {
        draft->started = true;
        draft->start = at;
        draft->copied = at;
    }
}

static hf_status read_other(struct reader *reader)
{
    struct draft *draft = &reader->draft;
    char c = reader->cursor.text[reader->cursor.at++];

    if (c == '(')
        draft->depth++;
    else if (c == ')' && draft->depth > 0)
        draft->depth--;
    return HF_OK;
}

static hf_status read_token(struct reader *reader)
{
    struct draft *draft = &reader->draft;
    size_t start = reader->cursor.at;
    char c = sql_peek(&reader->cursor, 0);

    if (!draft->solid)
        draft->statement.first = reader->cursor.at;
    draft->solid = true;
    if (reader->sqlite && c == '[')
        return check_closed(reader, start, sql_skip_bracketed(&reader->cursor));
    if (c == '\'' || c == '"' || (reader->sqlite && c == '`'))
        return check_closed(reader, start, sql_skip_quoted(&reader->cursor));
    if (c == '$')
        return read_dollar(reader);
    if (c == ':')
        return read_colon(reader);
    return sql_continues_name(c) ? read_word(reader) : read_other(reader);
}

static hf_status read_piece(struct reader *reader)
{
    size_t start = reader->cursor.at;
    char c = sql_peek(&reader->cursor, 0);

    if (sql_is_space(c)) {
        reader->cursor.at++;
        return HF_OK;
    }
    if (c == ';' && reader->draft.in_body) {
        reader->draft.after_end = true;
        reader->cursor.at++;
        return HF_OK;
    }
    if (c == ';' && reader->draft.depth == 0) {
        hf_status status = end_statement(reader);
        reader->cursor.at++;
        return status;
    }
    start_statement(&reader->draft, start);
    if (sql_at_pair(&reader->cursor, '/', '*'))
        return check_closed(reader, start,
                            sql_skip_block_comment(&reader->cursor, !reader->sqlite));
    if (!sql_at_pair(&reader->cursor, '-', '-'))
        return read_token(reader);
    sql_skip_line_comment(&reader->cursor, reader->sqlite);
    return HF_OK;
}

hf_status sql_script_read(const char *text, size_t size, bool sqlite,
                          struct sql_variable *variables, size_t variable_count,
                          struct sql_script *script, hf_error *err)
{
    struct reader reader = {
        .cursor = {.text = text, .size = size},
        .sqlite = sqlite,
        .variables = variables,
        .variable_count = variable_count,
        .script = script,
        .err = err,
    };
    hf_status status = HF_OK;

    *script = (struct sql_script){0};
    while (status == HF_OK && reader.cursor.at < size)
        status = read_piece(&reader);
    if (status == HF_OK)
        status = end_statement(&reader);
    start_anew(&reader);
    return status;
}

void sql_script_free(struct sql_script *script)
{
    for (size_t i = 0; i < script->count; i++)
        free_statement(&script->statements[i]);
    free(script->statements);
    *script = (struct sql_script){0};
}

static size_t offset_of_character(const char *text, int position)
{
    size_t size = strlen(text);
    size_t at = 0;

    for (int i = 1; i < position && at < size; i++)
        (void)hf__utf8_next((const unsigned char *)text, size, &at);
    return at;
}

size_t sql_statement_offset(const struct sql_statement *statement, int position)
{
    size_t sent = offset_of_character(statement->sql, position);
    size_t script_at = statement->start; /* where the text after the last parameter begins */
    size_t sent_at = 0;

    for (size_t i = 0; i < statement->count; i++) {
        const struct sql_parameter *parameter = &statement->parameters[i];
        if (sent < parameter->sent_at)
            break;
        if (sent < parameter->sent_at + parameter->sent_size)
            return parameter->script_at;
        script_at = parameter->script_at + parameter->script_size;
        sent_at = parameter->sent_at + parameter->sent_size;
    }
    return script_at + (sent - sent_at);
}
