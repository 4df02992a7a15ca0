#include "programs/registry/lint/files/gitignore.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/vec.h"
#include "programs/registry/lint/pcre.h"

enum { PATH_ROOM = 8192, FILE_LIMIT = 4 * 1024 * 1024 };

struct pattern {
    hf__glob *glob;
    bool negated;
    bool folders_only;
};

struct hf__gitignore {
    const hf__gitignore *parent;
    char *name;
    struct pattern *patterns;
    size_t count;
    size_t capacity;
};

/* A space at the end counts only after a backslash. */
static size_t without_trailing_spaces(const char *line, size_t size)
{
    size_t kept = 0;

    for (size_t i = 0; i < size; i++) {
        if (line[i] == '\\' && i + 1 < size)
            kept = ++i + 1;
        else if (line[i] != ' ')
            kept = i + 1;
    }
    return kept;
}

static hf_status add_line(hf__gitignore *ignore, const char *line, size_t size, hf_error *err)
{
    struct pattern pattern = {0};
    hf_status status;

    if (size > 0 && line[0] == '#')
        return HF_OK;
    size = without_trailing_spaces(line, size);
    if (size > 0 && line[0] == '!') {
        pattern.negated = true;
        line++;
        size--;
    }
    if (size > 0 && line[size - 1] == '/') {
        pattern.folders_only = true;
        size--;
    }
    if (size == 0)
        return HF_OK;
    status = hf__glob_compile(line, size, &pattern.glob, err);
    if (status != HF_OK || pattern.glob == NULL)
        return status;
    if (!hf__grow(&ignore->patterns, &ignore->capacity, ignore->count + 1,
                  sizeof *ignore->patterns)) {
        hf__glob_free(pattern.glob);
        return hf__no_memory(err);
    }
    ignore->patterns[ignore->count++] = pattern;
    return HF_OK;
}

static hf_status add_lines(hf__gitignore *ignore, const char *text, size_t size, hf_error *err)
{
    hf_status status = HF_OK;
    size_t at = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    while (status == HF_OK && at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t next = end != NULL ? (size_t)(end - text) : size;
        size_t length = next - at;
        if (end != NULL && length > 0 && text[next - 1] == '\r')
            length--;
        if (memchr(text + at, '\0', length) == NULL)
            status = add_line(ignore, text + at, length, err);
        at = next + 1;
    }
    return status;
}

hf_status hf__gitignore_parse(const hf__gitignore *parent, const char *name, const char *text,
                              size_t size, hf__gitignore **ignore, hf_error *err)
{
    hf__gitignore *made = calloc(1, sizeof *made);
    hf_status status;

    if (made != NULL)
        made->name = strdup(name);
    if (made == NULL || made->name == NULL) {
        hf__gitignore_free(made);
        return hf__no_memory(err);
    }
    made->parent = parent;
    status = add_lines(made, text, size, err);
    if (status != HF_OK) {
        hf__gitignore_free(made);
        return status;
    }
    *ignore = made;
    return HF_OK;
}

/* Like git, goes on without a file that is too large, cannot be read or is no regular file. */
static void read_small_file(int fd, hf__buf *text)
{
    struct stat status;
    char block[4096];
    ssize_t got;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > FILE_LIMIT)
        return;
    while ((got = read(fd, block, sizeof block)) > 0 && text->length < FILE_LIMIT)
        hf__buf_add(text, block, (size_t)got);
}

hf_status hf__gitignore_open(const hf__gitignore *parent, int folder, const char *name,
                             hf__gitignore **ignore, hf_error *err)
{
    hf__buf text = {0};
    int fd = openat(folder, ".gitignore", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    hf_status status;

    if (fd >= 0) {
        read_small_file(fd, &text);
        close(fd);
    }
    if (text.broken)
        status = hf__no_memory(err);
    else
        status = hf__gitignore_parse(parent, name, text.data != NULL ? text.data : "", text.length,
                                     ignore, err);
    hf__buf_free(&text);
    return status;
}

void hf__gitignore_free(hf__gitignore *ignore)
{
    if (ignore == NULL)
        return;
    for (size_t i = 0; i < ignore->count; i++)
        hf__glob_free(ignore->patterns[i].glob);
    free(ignore->patterns);
    free(ignore->name);
    free(ignore);
}

static const struct pattern *last_match(const hf__gitignore *ignore, const char *path,
                                        const char *name, bool is_folder)
{
    for (size_t i = ignore->count; i-- > 0;) {
        const struct pattern *pattern = &ignore->patterns[i];
        if ((is_folder || !pattern->folders_only) && hf__glob_matches(pattern->glob, path, name))
            return pattern;
    }
    return NULL;
}

/*
 * Each .gitignore is about paths below its own folder, so the path grows to the left on the way up.
 */
bool hf__gitignore_excludes(const hf__gitignore *ignore, const char *name, bool is_folder)
{
    char room[PATH_ROOM];
    size_t at = sizeof room - strlen(name) - 1;

    if (strlen(name) >= sizeof room)
        return false;
    memcpy(room + at, name, strlen(name) + 1);
    for (; ignore != NULL; ignore = ignore->parent) {
        const struct pattern *match = last_match(ignore, room + at, name, is_folder);
        if (match != NULL)
            return !match->negated;
        size_t size = strlen(ignore->name);
        if (ignore->parent != NULL && at < size + 1)
            return false;
        if (ignore->parent != NULL) {
            room[--at] = '/';
            at -= size;
            memcpy(room + at, ignore->name, size);
        }
    }
    return false;
}

/* ---- Glob patterns --------------------------------------------------------------------------- */

struct hf__glob {
    char *plain; /* a pattern without special characters; else NULL */
    hf__pcre *regex;
    bool for_names;
};

struct source {
    const char *text;
    size_t size;
    size_t at;
};

static void add_literal(hf__buf *regex, char c)
{
    if (!isalnum((unsigned char)c) && (unsigned char)c < 0x80)
        hf__buf_add(regex, "\\", 1);
    hf__buf_add(regex, &c, 1);
}

/* Reads one character in brackets, which may be escaped. False: the pattern has ended. */
static bool next_in_bracket(struct source *in, unsigned char *c)
{
    if (in->at < in->size && in->text[in->at] == '\\')
        in->at++;
    if (in->at >= in->size)
        return false;
    *c = (unsigned char)in->text[in->at++];
    return true;
}

/* "[:alpha:]" inside of a bracket; PCRE2 has the same names. */
static bool add_named_class(struct source *in, hf__buf *regex)
{
    static const char *const names[] = {"alnum", "alpha", "blank", "cntrl", "digit", "graph",
                                        "lower", "print", "punct", "space", "upper", "xdigit"};
    const char *rest = in->text + in->at;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size = strlen(names[i]);
        if (in->size - in->at >= size + 4 && strncmp(rest, "[:", 2) == 0 &&
            strncmp(rest + 2, names[i], size) == 0 && strncmp(rest + 2 + size, ":]", 2) == 0) {
            hf__buf_printf(regex, "[:%s:]", names[i]);
            in->at += size + 4;
            return true;
        }
    }
    return false;
}

static bool is_range(const struct source *in)
{
    return in->at + 1 < in->size && in->text[in->at] == '-' && in->text[in->at + 1] != ']';
}

static bool add_bracket_item(struct source *in, hf__buf *regex)
{
    unsigned char low = 0;
    unsigned char high = 0;

    if (add_named_class(in, regex))
        return true;
    if (strncmp(in->text + in->at, "[:", 2) == 0)
        return false; /* git matches nothing with an unknown class */
    if (!next_in_bracket(in, &low))
        return false;
    high = low;
    if (is_range(in)) {
        in->at++;
        if (!next_in_bracket(in, &high))
            return false;
    }
    if (high < low) /* git matches only the first character of such a range */
        high = low;
    hf__buf_printf(regex, "\\x%02x-\\x%02x", low, high);
    return true;
}

/* Reads what follows '['. Brackets never match a slash. */
static bool add_bracket(struct source *in, hf__buf *regex)
{
    bool first = true;
    bool negated = in->at < in->size && (in->text[in->at] == '!' || in->text[in->at] == '^');

    in->at += negated;
    hf__buf_puts(regex, negated ? "(?!/)[^" : "(?!/)[");
    for (; in->at < in->size; first = false) {
        if (!first && in->text[in->at] == ']') {
            in->at++;
            hf__buf_puts(regex, "]");
            return true;
        }
        if (!add_bracket_item(in, regex))
            return false;
    }
    return false;
}

/* '**' between slashes matches any number of folders; elsewhere it is the same as '*'. */
static void add_stars(struct source *in, hf__buf *regex, bool for_names)
{
    size_t start = in->at - 1;

    while (in->at < in->size && in->text[in->at] == '*')
        in->at++;

    bool many = in->at - start > 1 && (start == 0 || in->text[start - 1] == '/');
    if (!for_names && many && in->at == in->size) {
        hf__buf_puts(regex, ".*");
    } else if (!for_names && many && in->text[in->at] == '/') {
        hf__buf_puts(regex, "(?:.*/)?");
        in->at++;
    } else {
        hf__buf_puts(regex, "[^/]*");
    }
}

static bool translate(struct source *in, hf__buf *regex, bool for_names)
{
    hf__buf_puts(regex, "^");
    while (in->at < in->size) {
        char c = in->text[in->at++];
        if (c == '*') {
            add_stars(in, regex, for_names);
        } else if (c == '?') {
            hf__buf_puts(regex, "[^/]");
        } else if (c == '[') {
            if (!add_bracket(in, regex))
                return false;
        } else {
            if (c == '\\' && in->at == in->size)
                return false;
            if (c == '\\')
                c = in->text[in->at++];
            add_literal(regex, c);
        }
    }
    hf__buf_puts(regex, "$");
    return true;
}

static hf_status fill(hf__glob *glob, struct source *in, bool *can_match, hf_error *err)
{
    hf__buf regex = {0};
    hf_status status = HF_OK;

    if (strcspn(in->text, "*?[\\") >= in->size) {
        glob->plain = strndup(in->text, in->size);
        return glob->plain != NULL ? HF_OK : hf__no_memory(err);
    }
    *can_match = translate(in, &regex, glob->for_names);
    if (regex.broken)
        status = hf__no_memory(err);
    else if (*can_match)
        status = hf__pcre_compile_exact(regex.data, &glob->regex, err);
    hf__buf_free(&regex);
    return status;
}

hf_status hf__glob_compile(const char *pattern, size_t size, hf__glob **glob, hf_error *err)
{
    char *copy = strndup(pattern, size);
    hf__glob *made = calloc(1, sizeof *made);
    struct source in = {.text = copy, .size = size};
    hf_status status = HF_OK;
    bool can_match = true;

    *glob = NULL;
    if (copy == NULL || made == NULL) {
        status = hf__no_memory(err);
        goto out;
    }
    made->for_names = memchr(copy, '/', size) == NULL;
    if (size > 0 && copy[0] == '/') {
        in.text++;
        in.size--;
    }
    status = fill(made, &in, &can_match, err);
    if (status == HF_OK && can_match) {
        *glob = made;
        made = NULL;
    }
out:
    hf__glob_free(made);
    free(copy);
    return status;
}

void hf__glob_free(hf__glob *glob)
{
    if (glob == NULL)
        return;
    free(glob->plain);
    hf__pcre_free(glob->regex);
    free(glob);
}

bool hf__glob_matches(const hf__glob *glob, const char *path, const char *name)
{
    const char *text = glob->for_names ? name : path;
    hf__pcre_match match;

    if (glob->plain != NULL)
        return strcmp(glob->plain, text) == 0;
    return hf__pcre_find(glob->regex, text, strlen(text), 0, &match) == HF__PCRE_FOUND;
}
