#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"

const struct option common_options[] = {
    {
        .name = "url",
        .value = "URL",
        .help = "the store: postgresql://..., a libpq conninfo, or local:/folder",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct common, url),
    },
    {
        .name = "session-pool",
        .help = "the pooler in between is in session mode",
        .offset = offsetof(struct common, session_pool),
    },
    {
        .name = "registry",
        .value = "FILE",
        .help = "the registry of locks; else locks.yaml here or above",
        .kind = OPTION_TEXT,
        .offset = offsetof(struct common, registry),
    },
    {
        .name = "json",
        .help = "write JSON, errors too",
        .offset = offsetof(struct common, json),
    },
    {
        .letter = 'v',
        .name = "verbose",
        .help = "tell which registry and which store are used, and why",
        .offset = offsetof(struct common, verbose),
    },
    {
        .letter = 'h',
        .name = "help",
        .help = "show this help",
        .offset = offsetof(struct common, help),
    },
    {
        .letter = 'V',
        .name = "version",
        .help = "show the version",
        .offset = offsetof(struct common, version),
    },
    {0},
};

/* ---- near words ------------------------------------------------------------------------------ */

enum { WORD_MAX = 128 }; /* as long as the names of locks */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* The Levenshtein distance. b is at most WORD_MAX long. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    size_t b_length = strlen(b);

    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(row[j] + 1, row[j - 1] + 1, replaced);
        }
    }
    return row[b_length];
}

void suggest(struct suggestion *suggestion, const char *candidate)
{
    size_t length = strlen(suggestion->word);

    if (length > WORD_MAX || strlen(candidate) > WORD_MAX)
        return;
    size_t distance = edit_distance(suggestion->word, candidate);
    size_t tolerated = length <= 2 ? 1 : length <= 5 ? 2 : 3;
    if (distance > tolerated)
        return;
    if (suggestion->nearest == NULL || distance < suggestion->distance) {
        suggestion->nearest = candidate;
        suggestion->distance = distance;
    }
}

/* ---- parsing --------------------------------------------------------------------------------- */

struct parser {
    const struct command *command;
    void *values;
    struct invocation *in;
    int argc;
    char **argv;
    int next; /* the argument to look at next */
};

/* An option, and the struct that receives its value: the command's values, or struct common. */
struct match {
    const struct option *option;
    void *values;
};

static const struct option *find_in(const struct option *table, char letter, const char *name,
                                    size_t name_length)
{
    for (; table != NULL && table->name != NULL; table++) {
        if (letter != 0 && table->letter == letter)
            return table;
        if (name != NULL && strlen(table->name) == name_length &&
            memcmp(table->name, name, name_length) == 0)
            return table;
    }
    return NULL;
}

static bool find_option(const struct parser *parser, char letter, const char *name,
                        size_t name_length, struct match *match)
{
    match->option = find_in(parser->command->options, letter, name, name_length);
    match->values = parser->values;
    if (match->option == NULL) {
        match->option = find_in(common_options, letter, name, name_length);
        match->values = &parser->in->common;
    }
    return match->option != NULL;
}

static int refuse_value(const struct parser *parser, const struct option *option,
                        const hf_error *err)
{
    hf_error named = *err;

    if (hf__fail(&named, err->code, "--%s: %s", option->name, err->message) != HF_OK)
        hf__hint(&named, "%s", err->hint);
    return report_error(&parser->in->report, &named);
}

static hf_status read_duration(const struct option *option, const char *text, int64_t *ms,
                               hf_error *err)
{
    char low[32], high[32];
    hf_status status = hf__parse_duration(text, ms, err);

    if (status != HF_OK || option->high == 0 || (*ms >= option->low && *ms <= option->high))
        return status;
    status = hf__fail(err, HF_INVALID, "the time is out of range: '%s'", text);
    hf__hint(err, "give a time from %s to %s", hf__show_duration(low, sizeof low, option->low),
             hf__show_duration(high, sizeof high, option->high));
    return status;
}

/* argc items are enough: no option is repeated more often than that. */
static hf_status add_text(const struct parser *parser, struct texts *texts, const char *text,
                          hf_error *err)
{
    if (texts->items == NULL)
        texts->items = calloc((size_t)parser->argc, sizeof *texts->items);
    if (texts->items == NULL)
        return hf__no_memory(err);
    texts->items[texts->count++] = text;
    return HF_OK;
}

static int store_value(const struct parser *parser, const struct match *match, const char *text)
{
    void *member = (char *)match->values + match->option->offset;
    struct number *number = member;
    hf_status status = HF_OK;
    hf_error err;

    switch (match->option->kind) {
    case OPTION_FLAG: *(bool *)member = true; break;
    case OPTION_TEXT: *(const char **)member = text; break;
    case OPTION_TEXTS: status = add_text(parser, member, text, &err); break;
    case OPTION_NUMBER:
        number->given = true;
        if (text != NULL)
            status = hf__parse_int64(text, "the value", match->option->low, match->option->high,
                                     &number->value, &err);
        break;
    case OPTION_DURATION:
        number->given = true;
        if (text != NULL)
            status = read_duration(match->option, text, &number->value, &err);
        break;
    }
    parser->in->report.json |= parser->in->common.json;
    return status == HF_OK ? EXIT_OK : refuse_value(parser, match->option, &err);
}

static int refuse_unknown(const struct parser *parser, const char *name, size_t name_length)
{
    char word[SHOWN_MAX];
    char shown[SHOWN_MAX];
    struct suggestion suggestion = {.word = word};

    snprintf(word, sizeof word, "%.*s", (int)(name_length < SHOWN_MAX ? name_length : SHOWN_MAX),
             name);
    for (const struct option *o = parser->command->options; o != NULL && o->name != NULL; o++)
        suggest(&suggestion, o->name);
    for (const struct option *o = common_options; o->name != NULL; o++)
        suggest(&suggestion, o->name);
    show_argument(shown, word);
    if (suggestion.nearest == NULL)
        return report_usage(&parser->in->report, parser->command, "unknown option --%s", shown);
    return report_usage(&parser->in->report, parser->command,
                        "unknown option --%s; did you mean --%s?", shown, suggestion.nearest);
}

static int parse_long(struct parser *parser, const char *text)
{
    size_t length = strcspn(text, "=");
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    struct match match;

    if (!find_option(parser, 0, text, length, &match))
        return refuse_unknown(parser, text, length);

    const struct option *option = match.option;
    if (value != NULL && option->value == NULL)
        return report_usage(&parser->in->report, parser->command, "--%s takes no value",
                            option->name);
    if (value == NULL && option->value != NULL && !option->value_optional) {
        if (parser->next == parser->argc)
            return report_usage(&parser->in->report, parser->command, "--%s needs a value: %s",
                                option->name, option->value);
        value = parser->argv[parser->next++];
    }
    return store_value(parser, &match, value);
}

/*
 * Several letters behind one '-'. The first one that needs a value takes the rest of the argument,
 * or else the next argument.
 */
static int parse_letters(struct parser *parser, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const char *value = NULL;
        struct match match;

        if (!find_option(parser, *letters, NULL, 0, &match)) {
            char shown[SHOWN_MAX];
            return report_usage(&parser->in->report, parser->command, "unknown option -%s",
                                show_argument(shown, (char[]){*letters, '\0'}));
        }
        if (match.option->value != NULL) {
            if (letters[1] != '\0')
                value = letters + 1;
            else if (parser->next < parser->argc)
                value = parser->argv[parser->next++];
            else
                return report_usage(&parser->in->report, parser->command, "-%c needs a value: %s",
                                    *letters, match.option->value);
        }
        int code = store_value(parser, &match, value);
        if (code != EXIT_OK || value != NULL)
            return code;
    }
    return EXIT_OK;
}

/* Options may come between operands. Operands are moved to the front of argv. */
static int parse_all(struct parser *parser)
{
    int operands = 0;
    int code = EXIT_OK;

    while (code == EXIT_OK && parser->next < parser->argc) {
        char *argument = parser->argv[parser->next];
        bool operand = argument[0] != '-' || argument[1] == '\0';
        if (operand && parser->command->operands_end_options)
            break;
        parser->next++;
        if (operand)
            parser->argv[operands++] = argument;
        else if (strcmp(argument, "--") == 0)
            break;
        else if (argument[1] == '-')
            code = parse_long(parser, argument + 2);
        else
            code = parse_letters(parser, argument + 1);
    }
    while (parser->next < parser->argc)
        parser->argv[operands++] = parser->argv[parser->next++];
    parser->argv[operands] = NULL;
    parser->in->operands = parser->argv;
    parser->in->count = operands;
    return code;
}

bool parse_options(const struct command *command, int argc, char **argv, void *values,
                   struct invocation *in, int *exit_code)
{
    struct parser parser = {command, values, in, argc, argv, 1};
    char shown[SHOWN_MAX];

    *in = (struct invocation){.report = report_to_stderr(false)};
    *exit_code = parse_all(&parser);
    if (*exit_code != EXIT_OK)
        return false;
    if (in->common.help)
        print_help(command, stdout);
    else if (in->common.version)
        print_version(stdout);
    else if (in->count > 0 && !command->takes_operands)
        *exit_code = report_usage(&in->report, command, "unexpected argument '%s'",
                                  show_argument(shown, in->operands[0]));
    else
        return true;
    return false;
}

/* ---- actions --------------------------------------------------------------------------------- */

const void *choose_action(const struct command *command, const struct invocation *in,
                          const char *missing, const void *actions, size_t count, size_t size,
                          int *exit_code)
{
    const struct action *found = NULL;
    char shown[SHOWN_MAX];

    for (size_t i = 0; i < count && in->count > 0 && found == NULL; i++) {
        const struct action *action = (const void *)((const char *)actions + i * size);
        if (strcmp(action->word, in->operands[0]) == 0)
            found = action;
    }
    if (in->count == 0)
        *exit_code = report_usage(&in->report, command, "%s", missing);
    else if (found == NULL)
        *exit_code = report_usage(&in->report, command, "unknown: %s %s", command->name,
                                  show_argument(shown, in->operands[0]));
    else if (in->count != found->operands + 1)
        *exit_code = report_usage(&in->report, command, "the operands are: %s", found->usage);
    else
        return found;
    return NULL;
}

/* ---- help ------------------------------------------------------------------------------------ */

void print_version(FILE *out)
{
    fprintf(out, "holdfast %s\n", hf_version());
}

static void print_usage(const struct command *command, FILE *out)
{
    const char *intro = "Usage:";

    for (const char *form = command->usage; form != NULL;) {
        const char *end = strchrnul(form, '\n');
        fprintf(out, "%s holdfast %s %.*s\n", intro, command->name, (int)(end - form), form);
        intro = "      ";
        form = *end != '\0' ? end + 1 : NULL;
    }
}

static void print_option(const struct option *option, FILE *out)
{
    char names[64];
    const char *value = option->value != NULL ? option->value : "";
    const char *space = option->value == NULL ? "" : option->value_optional ? "[=" : " ";
    const char *close = option->value_optional ? "]" : "";

    snprintf(names, sizeof names, "%c%c%s --%s%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name, space,
             value, close);
    if (strlen(names) <= 28)
        fprintf(out, "  %-28s  %s\n", names, option->help);
    else
        fprintf(out, "  %s\n  %-28s  %s\n", names, "", option->help);
}

void print_help(const struct command *command, FILE *out)
{
    print_usage(command, out);
    fprintf(out, "\n%s\n\nOptions:\n", command->summary);
    for (const struct option *o = command->options; o != NULL && o->name != NULL; o++)
        print_option(o, out);
    for (const struct option *o = common_options; o->name != NULL; o++)
        print_option(o, out);
}
