#include "lib/registry/document.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"
#include "base/vec.h"
#include "lib/registry/finding.h"

struct reader {
    hf__document *document;
    const char *path;
    hf__findings *findings;
    yaml_parser_t parser;
    hf__node *open[HF__DEPTH_MAX];
    size_t depth;
    hf__node *anchors[HF__ANCHORS_MAX];
    size_t anchor_count;
    unsigned documents;
    bool no_memory;
};

#define report(reader, rule, at, remedy, ...)                                                      \
    ((void)hf__findings_add((reader)->findings, &hf__reading_rules[rule], (reader)->path,          \
                            (at).line, (at).column, (remedy), __VA_ARGS__))

static hf__place place_of(yaml_mark_t mark)
{
    return (hf__place){(unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

const char *hf__node_kind_name(const hf__node *node)
{
    switch (node->kind) {
    case HF__LIST: return "a list";
    case HF__MAPPING: return "a mapping";
    default: return node->text[0] == '\0' && !node->quoted ? "nothing" : "a single value";
    }
}

/* ---- the bytes ---- */

static bool is_allowed(int32_t code)
{
    return code >= 0x20 ? code != 0x7f : code == '\t' || code == '\n' || code == '\r';
}

/* libyaml would report the offset in bytes; editors show lines and columns. */
static bool bytes_are_text(struct reader *reader, const char *text, size_t size)
{
    hf__place at = {1, 1};
    for (size_t i = 0; i < size;) {
        unsigned char byte = (unsigned char)text[i];
        int32_t code = hf__utf8_next((const unsigned char *)text, size, &i);
        if (code < 0)
            report(reader, HF__RULE_YAML, at, "save the file as UTF-8",
                   "the byte 0x%02x is no valid UTF-8", byte);
        else if (!is_allowed(code))
            report(reader, HF__RULE_YAML, at, "remove it, or write it as an escape in quotes",
                   code == 0 ? "a NUL byte cannot stand here"
                             : "the control character 0x%02x cannot stand here",
                   (unsigned)code);
        if (code < 0 || !is_allowed(code))
            return false;
        at.column = code == '\n' ? 1 : at.column + 1;
        at.line += code == '\n';
    }
    return true;
}

/* ---- nodes ---- */

static hf__node *new_node(struct reader *reader, hf__node_kind kind, yaml_mark_t mark,
                          const yaml_char_t *anchor)
{
    hf__node *node = calloc(1, sizeof *node);
    if (node && anchor && !(node->anchor = strdup((const char *)anchor))) {
        free(node);
        node = NULL;
    }
    if (!node) {
        reader->no_memory = true;
        return NULL;
    }
    node->kind = kind;
    node->at = place_of(mark);
    node->weight = 1;
    node->next = reader->document->nodes;
    reader->document->nodes = node;
    if (!node->anchor)
        return node;
    if (reader->anchor_count == HF__ANCHORS_MAX) {
        report(reader, HF__RULE_TOO_LARGE, node->at, "", "the file has more than %d anchors",
               HF__ANCHORS_MAX);
        return NULL;
    }
    return reader->anchors[reader->anchor_count++] = node;
}

static bool append(struct reader *reader, hf__node *parent, hf__node *node)
{
    if (!hf__grow(&parent->items, &parent->capacity, parent->count + 1, sizeof(hf__node *))) {
        reader->no_memory = true;
        return false;
    }
    parent->items[parent->count++] = node;
    return true;
}

static bool key_is_fit(struct reader *reader, const hf__node *mapping, const hf__node *key)
{
    if (key->kind != HF__SCALAR) {
        report(reader, HF__RULE_YAML, key->at, "", "the name of a field is %s",
               hf__node_kind_name(key));
        return false;
    }
    if (mapping->count / 2 >= HF__FIELDS_MAX) {
        report(reader, HF__RULE_TOO_LARGE, key->at, "", "a mapping has more than %d fields",
               HF__FIELDS_MAX);
        return false;
    }
    for (size_t i = 0; i < mapping->count; i += 2) {
        if (strcmp(mapping->items[i]->text, key->text) != 0)
            continue;
        char shown[80];
        report(reader, HF__RULE_REPEATED_FIELD, key->at, "keep one of them",
               "'%s' is given twice, first in line %u",
               hf__show(shown, sizeof shown, key->text, strlen(key->text)),
               mapping->items[i]->at.line);
        break; /* both are kept: there may be more to say */
    }
    return true;
}

/* Adds a value to the list or mapping that is open. Returns false when reading is over. */
static bool place_node(struct reader *reader, hf__node *node)
{
    reader->document->weight += node->weight;
    if (reader->document->weight > HF__NODES_MAX) {
        report(reader, HF__RULE_TOO_LARGE, node->at, "", "the file has more than %d values",
               HF__NODES_MAX);
        return false;
    }
    if (reader->depth == 0) {
        reader->document->root = node;
        return true;
    }
    hf__node *parent = reader->open[reader->depth - 1];
    bool is_key = parent->kind == HF__MAPPING && parent->count % 2 == 0;
    if (is_key && !key_is_fit(reader, parent, node))
        return false;
    parent->weight += node->weight;
    return append(reader, parent, node);
}

static bool open_node(struct reader *reader, hf__node *node)
{
    if (!node || !place_node(reader, node))
        return false;
    if (reader->depth == HF__DEPTH_MAX) {
        report(reader, HF__RULE_TOO_LARGE, node->at, "", "values are nested more than %d deep",
               HF__DEPTH_MAX);
        return false;
    }
    reader->open[reader->depth++] = node;
    return true;
}

/* Closes a list or mapping. Its weight counts for everything around it too. */
static bool close_node(struct reader *reader)
{
    hf__node *node = reader->open[--reader->depth];
    node->complete = true;
    if (reader->depth > 0)
        reader->open[reader->depth - 1]->weight += node->weight - 1;
    return true;
}

static bool take_scalar(struct reader *reader, const yaml_event_t *event)
{
    hf__node *node = new_node(reader, HF__SCALAR, event->start_mark, event->data.scalar.anchor);
    if (!node)
        return false;
    if (strlen((const char *)event->data.scalar.value) != event->data.scalar.length) {
        report(reader, HF__RULE_YAML, node->at, "", "a NUL character cannot stand here");
        return false;
    }
    node->text = strdup((const char *)event->data.scalar.value);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->complete = true;
    if (!node->text) {
        reader->no_memory = true;
        return false;
    }
    return place_node(reader, node);
}

static hf__node *find_anchor(const struct reader *reader, const char *name)
{
    for (size_t i = reader->anchor_count; i > 0; i--)
        if (strcmp(reader->anchors[i - 1]->anchor, name) == 0)
            return reader->anchors[i - 1];
    return NULL;
}

static bool take_alias(struct reader *reader, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    hf__place at = place_of(event->start_mark);
    char shown[80];
    hf__node *node = find_anchor(reader, name);
    hf__show(shown, sizeof shown, name, strlen(name));
    if (!node)
        report(reader, HF__RULE_YAML, at, "define it first, with &NAME",
               "there is no anchor '%s' before this alias", shown);
    else if (!node->complete)
        report(reader, HF__RULE_YAML, at, "write the value out", "the anchor '%s' contains itself",
               shown);
    return node && node->complete && place_node(reader, node);
}

static bool refuse_tag(struct reader *reader, const yaml_event_t *event, const yaml_char_t *tag)
{
    char shown[80];
    if (!tag)
        return false;
    report(reader, HF__RULE_YAML, place_of(event->start_mark), "remove the tag",
           "tags such as '%s' have no meaning here",
           hf__show(shown, sizeof shown, tag, strlen((const char *)tag)));
    return true;
}

/* ---- events ---- */

static bool take_event(struct reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (reader->documents++ == 0)
            return true;
        report(reader, HF__RULE_YAML, place_of(event->start_mark), "keep one of them",
               "a second document begins here");
        return false;
    case YAML_SCALAR_EVENT:
        return !refuse_tag(reader, event, event->data.scalar.tag) && take_scalar(reader, event);
    case YAML_ALIAS_EVENT: return take_alias(reader, event);
    case YAML_SEQUENCE_START_EVENT:
        return !refuse_tag(reader, event, event->data.sequence_start.tag) &&
               open_node(reader, new_node(reader, HF__LIST, event->start_mark,
                                          event->data.sequence_start.anchor));
    case YAML_MAPPING_START_EVENT:
        return !refuse_tag(reader, event, event->data.mapping_start.tag) &&
               open_node(reader, new_node(reader, HF__MAPPING, event->start_mark,
                                          event->data.mapping_start.anchor));
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return close_node(reader);
    default: return true;
    }
}

static void report_syntax(struct reader *reader, const char *text, size_t size)
{
    const yaml_parser_t *parser = &reader->parser;
    hf__place at = place_of(parser->problem_mark);
    const char *problem = parser->problem ? parser->problem : "it cannot be read";
    size_t index = parser->problem_mark.index;
    if (parser->error == YAML_MEMORY_ERROR) {
        reader->no_memory = true;
        return;
    }
    bool tab = index < size && text[index] == '\t'; /* characters are bytes up to the first other */
    if (parser->context)
        report(reader, HF__RULE_YAML, at, tab ? "indent with spaces, not tabs" : "",
               "broken YAML: %s, %s in line %zu", problem, parser->context,
               parser->context_mark.line + 1);
    else
        report(reader, HF__RULE_YAML, at, "", "broken YAML: %s", problem);
}

static bool read_events(struct reader *reader, const char *text, size_t size)
{
    bool going_on = true;
    yaml_event_type_t type = YAML_NO_EVENT;
    while (going_on && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader->parser, &event)) {
            report_syntax(reader, text, size);
            return false;
        }
        type = event.type;
        going_on = take_event(reader, &event);
        yaml_event_delete(&event);
    }
    return going_on;
}

static bool read_text(struct reader *reader, const char *text, size_t size)
{
    if (size > HF__FILE_MAX) {
        report(reader, HF__RULE_TOO_LARGE, (hf__place){0}, "a registry lists locks, not data",
               "the file has %zu bytes, more than %d", size, HF__FILE_MAX);
        return false;
    }
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        text += 3;
        size -= 3;
    }
    if (!bytes_are_text(reader, text, size))
        return false;
    if (!yaml_parser_initialize(&reader->parser)) {
        reader->no_memory = true;
        return false;
    }
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, size);
    bool whole = read_events(reader, text, size);
    yaml_parser_delete(&reader->parser);
    return whole;
}

hf_status hf__document_read(hf__document *document, const char *path, const char *text, size_t size,
                            hf__findings *findings, hf_error *err)
{
    struct reader reader = {.document = document, .path = path, .findings = findings};
    *document = (hf__document){0};
    bool whole = read_text(&reader, text, size);
    if (reader.no_memory || findings->broken)
        return hf__no_memory(err);
    if (whole && !document->root)
        report(&reader, HF__RULE_YAML, ((hf__place){1, 1}), "start it with version: 1",
               "the file is empty");
    if (!whole)
        document->root = NULL;
    return HF_OK;
}

void hf__document_free(hf__document *document)
{
    hf__node *node = document->nodes;
    while (node) {
        hf__node *next = node->next;
        free(node->items);
        free(node->text);
        free(node->anchor);
        free(node);
        node = next;
    }
    *document = (hf__document){0};
}
