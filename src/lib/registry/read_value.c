/* Reads single values and mappings, and says what is wrong with them. */
#include "lib/registry/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { SHOWN = 80 };

static const char *show(char out[SHOWN], const hf__node *node)
{
    return hf__show(out, SHOWN, node->text, strlen(node->text));
}

const hf__node *hf__mapping_get(const hf__node *node, const char *name)
{
    if (node->kind != HF__MAPPING)
        return NULL;
    for (size_t i = 0; i + 1 < node->count; i += 2)
        if (strcmp(node->items[i]->text, name) == 0)
            return node->items[i + 1];
    return NULL;
}

static void complain_of_unknown(hf__reading *reading, const hf__node *key, const char *what,
                                const hf__field *fields)
{
    char shown[SHOWN];
    hf__buf known = {0};
    hf__buf_puts(&known, "known here are");
    for (; fields->name; fields++)
        hf__buf_printf(&known, " %s%s", fields->name, fields[1].name ? "," : "");
    hf__complain(reading, HF__RULE_UNKNOWN_FIELD, key->at, known.broken ? "" : known.data,
                 "%s has no field '%s'", what, show(shown, key));
    hf__buf_free(&known);
}

static const hf__field *find_field(const hf__field *fields, const char *name)
{
    for (; fields->name; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

void hf__read_mapping(hf__reading *reading, const hf__node *node, const char *what,
                      const hf__field *fields, void *into)
{
    if (node->kind != HF__MAPPING) {
        hf__complain(reading, HF__RULE_WRONG_TYPE, node->at, "write it as NAME: VALUE",
                     "%s is %s, not a mapping", what, hf__node_kind_name(node));
        return;
    }
    for (size_t i = 0; i + 1 < node->count; i += 2) {
        const hf__field *field = find_field(fields, node->items[i]->text);
        if (!field)
            complain_of_unknown(reading, node->items[i], what, fields);
        else if (hf__mapping_get(node, field->name) == node->items[i + 1]) /* not a repeated one */
            field->read(reading, field, node->items[i + 1], (char *)into + field->offset);
    }
}

static bool is_empty(const hf__node *node)
{
    return !node->quoted && (strcmp(node->text, "") == 0 || strcmp(node->text, "~") == 0 ||
                             strcmp(node->text, "null") == 0);
}

static bool is_single(hf__reading *reading, const hf__node *node, const char *what,
                      const char *wanted)
{
    if (node->kind == HF__SCALAR && !is_empty(node))
        return true;
    hf__complain(reading, HF__RULE_WRONG_TYPE, node->at, "", "%s is %s, not %s", what,
                 node->kind == HF__SCALAR ? "empty" : hf__node_kind_name(node), wanted);
    return false;
}

bool hf__read_text(hf__reading *reading, const hf__node *node, const char *what, char **out)
{
    if (!is_single(reading, node, what, "text"))
        return false;
    if (node->text[0] == '\0') {
        hf__complain(reading, HF__RULE_WRONG_VALUE, node->at, "leave the field out, or fill it",
                     "%s is empty", what);
        return false;
    }
    char *copy = strdup(node->text);
    if (!copy) {
        reading->no_memory = true;
        return false;
    }
    free(*out);
    *out = copy;
    return true;
}

/* Decimal, or hexadecimal with 0x: the forms that mean the same in YAML 1.1 and 1.2. */
static bool looks_like_integer(const char *text)
{
    text += *text == '-' || *text == '+';
    if (strncmp(text, "0x", 2) == 0)
        return text[2] != '\0' && text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == '\0';
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool has_leading_zero(const char *text)
{
    text += *text == '-' || *text == '+';
    return text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

static bool is_plain_number(hf__reading *reading, const hf__node *node, const char *what,
                            bool is_number)
{
    char shown[SHOWN];
    if (!is_single(reading, node, what, "a number"))
        return false;
    if (is_number && node->quoted)
        hf__complain(reading, HF__RULE_NUMBER_AS_STRING, node->at, "remove the quotes",
                     "%s is the text '%s', not a number", what, show(shown, node));
    else if (!is_number)
        hf__complain(reading, HF__RULE_WRONG_TYPE, node->at, "", "%s is '%s', not a number", what,
                     show(shown, node));
    return is_number && !node->quoted;
}

bool hf__read_integer(hf__reading *reading, const hf__node *node, const char *what, int64_t low,
                      int64_t high, int64_t *out)
{
    char shown[SHOWN];
    bool is_number = node->kind == HF__SCALAR && looks_like_integer(node->text);
    if (!is_plain_number(reading, node, what, is_number))
        return false;
    if (has_leading_zero(node->text)) {
        hf__complain(reading, HF__RULE_WRONG_VALUE, node->at, "write it without the zero",
                     "%s begins with a zero, which some readers take for octal: %s", what,
                     show(shown, node));
        return false;
    }
    errno = 0;
    int64_t value = strtoll(node->text, NULL, strstr(node->text, "0x") ? 16 : 10);
    if (errno == ERANGE || value < low || value > high) {
        hf__complain(reading, HF__RULE_ID_RANGE, node->at, "",
                     "%s is %s, out of the range from %" PRId64 " to %" PRId64, what,
                     show(shown, node), low, high);
        return false;
    }
    *out = value;
    return true;
}

/* strtod follows the process's locale, in which '0,01' may be a number. */
static bool parse_decimal(const char *text, double *value)
{
    double number = 0, scale = 1;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (*at - '0');
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            number += (*at - '0') * (scale /= 10);
    *value = number;
    return at > text && *at == '\0' && strcmp(text, ".") != 0;
}

bool hf__read_number(hf__reading *reading, const hf__node *node, const char *what, double low,
                     double high, double *out)
{
    double value = 0;
    bool is_number = node->kind == HF__SCALAR && parse_decimal(node->text, &value);
    if (!is_plain_number(reading, node, what, is_number))
        return false;
    if (value < low || value > high) {
        hf__complain(reading, HF__RULE_WRONG_VALUE, node->at, "",
                     "%s is %s, out of the range from %g to %g", what, node->text, low, high);
        return false;
    }
    *out = value;
    return true;
}

int hf__read_word(hf__reading *reading, const hf__node *node, const char *what,
                  const char *const *words)
{
    char shown[SHOWN];
    hf__buf list = {0};
    if (!is_single(reading, node, what, "a word"))
        return -1;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], node->text) == 0) {
            hf__buf_free(&list);
            return i;
        }
        hf__buf_printf(&list, "%s%s", i == 0 ? "give " : words[i + 1] ? ", " : " or ", words[i]);
    }
    hf__complain(reading, HF__RULE_WRONG_VALUE, node->at, list.broken ? "" : list.data,
                 "%s cannot be '%s'", what, show(shown, node));
    hf__buf_free(&list);
    return -1;
}

bool hf__read_boolean(hf__reading *reading, const hf__node *node, const char *what, bool *out)
{
    static const char *const words[] = {"false", "true", NULL};
    int word = hf__read_word(reading, node, what, words);
    if (word >= 0)
        *out = word == 1;
    return word >= 0;
}
