/* Which stores are served, by name: of --store, and of a file, for URLs with a password. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "programs/serve/serve.h"

/* They are a part of paths, where "." and ".." mean something, and values of a label. */
static bool is_name(const char *text, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";

    if (size == 0 || size > HF__STORE_NAME_MAX || strchr("._-", text[0]) != NULL)
        return false;
    for (size_t i = 0; i < size; i++)
        if (strchr(letters, text[i]) == NULL)
            return false;
    return true;
}

/* Anything else could only fail later, and once for each store. */
static bool is_url(const char *text)
{
    return strncmp(text, "local:", 6) == 0 || strncmp(text, "postgresql://", 13) == 0 ||
           strncmp(text, "postgres://", 11) == 0 || strchr(text, '=') != NULL;
}

static bool is_taken(const hf__named_stores *stores, const char *name, size_t size)
{
    for (size_t i = 0; i < stores->count; i++)
        if (strlen(stores->items[i].name) == size && memcmp(stores->items[i].name, name, size) == 0)
            return true;
    return false;
}

/* where is what the messages begin with. No message has the URL in it. */
static hf_status add(hf__named_stores *stores, const char *where, const char *name, size_t size,
                     const char *url, hf_status code, hf_error *err)
{
    if (!is_name(name, size))
        return hf__fail(err, code,
                        "%s: a name has at most %d letters, digits and any of ._-, and begins with "
                        "a letter or a digit",
                        where, HF__STORE_NAME_MAX);
    if (is_taken(stores, name, size))
        return hf__fail(err, code, "%s: the name %.*s is there twice", where, (int)size, name);
    if (!is_url(url))
        return hf__fail(err, code,
                        "%s: the URL of %.*s is missing or none: it is postgresql://… or "
                        "local:FOLDER",
                        where, (int)size, name);
    if (stores->count == HF__STORES_MAX)
        return hf__fail(err, code, "%s: more than %d stores", where, HF__STORES_MAX);
    hf__named_store *store = &stores->items[stores->count];
    store->url = strdup(url);
    if (store->url == NULL)
        return hf__no_memory(err);
    (void)snprintf(store->name, sizeof store->name, "%.*s", (int)size, name);
    stores->count++;
    return HF_OK;
}

hf_status hf__stores_add(hf__named_stores *stores, const char *text, hf_error *err)
{
    size_t size = strcspn(text, "=");

    return text[size] == '=' ? add(stores, "--store", text, size, text + size + 1, HF_INVALID, err)
                             : hf__fail(err, HF_INVALID, "--store takes NAME=URL");
}

/* NAME URL. What follows the first blanks is the URL, as parameters of libpq have blanks, too. */
static hf_status add_line(hf__named_stores *stores, const char *where, char *line, hf_error *err)
{
    char *name = line + strspn(line, " \t");
    size_t size = strcspn(name, " \t\r"), end = strlen(name);

    while (end > 0 && strchr(" \t\r", name[end - 1]) != NULL)
        name[--end] = '\0';
    if (name[0] == '\0' || name[0] == '#')
        return HF_OK;
    size = size < end ? size : end;
    return add(stores, where, name, size, name + size + strspn(name + size, " \t"), HF_CONFIG, err);
}

static hf_status add_lines(hf__named_stores *stores, const char *path, hf__buf *text, hf_error *err)
{
    hf_status status = HF_OK;
    size_t number = 1, before = stores->count;
    char shown[160], where[200];

    hf__show(shown, sizeof shown, path, strlen(path));
    if (memchr(text->data, '\0', text->length) != NULL)
        return hf__fail(err, HF_CONFIG, "the stores file %s is no text", shown);
    for (char *line = text->data, *next; status == HF_OK && line != NULL; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        (void)snprintf(where, sizeof where, "%s:%zu", shown, number);
        status = add_line(stores, where, line, err);
    }
    if (status == HF_OK && stores->count == before)
        status = hf__fail(err, HF_CONFIG, "%s:1: no line says NAME URL", shown);
    return status;
}

hf_status hf__stores_read(hf__named_stores *stores, const char *path, hf_error *err)
{
    hf__buf text = {0};
    hf_status status = hf__secrets_read("stores file", path, &text, err);

    hf__buf_puts(&text, ""); /* there is a text, also of an empty file */
    if (status == HF_OK)
        status = text.broken ? hf__no_memory(err) : add_lines(stores, path, &text, err);
    if (text.data != NULL)
        OPENSSL_cleanse(text.data, text.length);
    hf__buf_free(&text);
    return status;
}

void hf__stores_free(hf__named_stores *stores)
{
    for (size_t i = 0; i < stores->count; i++) {
        OPENSSL_cleanse(stores->items[i].url, strlen(stores->items[i].url));
        free(stores->items[i].url);
    }
    stores->count = 0;
}
