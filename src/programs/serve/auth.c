/*
 * Who may look. The token comes as `Authorization: Bearer`, or once by the login form, which
 * answers with a cookie that this process has signed. Of sessions nothing is kept except which
 * ones were signed out; a restart ends them all.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/vec.h"
#include "programs/serve/http.h"
#include "programs/serve/serve.h"

enum {
    SECRET_SIZE = 32,
    DIGEST_SIZE = 32,
    NONCE_SIZE = 16,
    SESSION_MS = 12 * 3600 * 1000,
    SIGNATURE_SIZE = 2 * DIGEST_SIZE + 1,
    ENDED = 256, /* how many signed-out sessions are remembered */
};

struct hf__auth {
    struct known {
        hf__viewer viewer;
        unsigned char digest[DIGEST_SIZE];
    } * known; /* by their tokens */
    size_t count;
    unsigned char secret[SECRET_SIZE];
    char cookie_name[32];
    char *cookie_path;
    pthread_mutex_t guard;
    char ended[ENDED][SIGNATURE_SIZE];
    size_t next_ended;
};

/* ---- digests ---- */

/*
 * A digest that only this process can make. purpose keeps a digest that was made for one thing
 * from being used for another. False without memory; then nothing matches.
 */
static bool digest_of(const hf__auth *auth, const char *purpose, const char *text,
                      unsigned char digest[DIGEST_SIZE])
{
    unsigned char inner[EVP_MAX_MD_SIZE];
    unsigned size = 0;

    return HMAC(EVP_sha256(), auth->secret, SECRET_SIZE, (const unsigned char *)purpose,
                strlen(purpose), inner, &size) != NULL &&
           HMAC(EVP_sha256(), inner, DIGEST_SIZE, (const unsigned char *)text, strlen(text), digest,
                &size) != NULL;
}

static void write_hex(char *out, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/*
 * Takes equally long for every token, whatever its length. Wrong tokens do not bar anybody: a token
 * is too long to be guessed, and behind a proxy everybody has the same address.
 */
static hf__access try_token(const hf__auth *auth, const char *token, size_t *number)
{
    unsigned char digest[DIGEST_SIZE];
    hf__access access = HF__ACCESS_WRONG;

    if (!digest_of(auth, "token", token, digest))
        return HF__ACCESS_WRONG;
    for (size_t i = 0; i < auth->count; i++)
        if (CRYPTO_memcmp(digest, auth->known[i].digest, DIGEST_SIZE) == 0) {
            *number = i;
            access = HF__ACCESS_GRANTED;
        }
    return access;
}

static bool know(hf__auth *auth, const hf__tokens *tokens)
{
    auth->known = calloc(tokens->count + 1, sizeof *auth->known);
    if (auth->known == NULL)
        return false;
    auth->count = tokens->count;
    for (size_t i = 0; i < tokens->count; i++) {
        auth->known[i].viewer = tokens->items[i].viewer;
        if (!digest_of(auth, "token", tokens->items[i].secret, auth->known[i].digest))
            return false;
    }
    return true;
}

hf_status hf__auth_open(const hf__tokens *tokens, unsigned port, const char *base, hf__auth **out,
                        hf_error *err)
{
    hf__auth *auth = calloc(1, sizeof *auth);

    if (auth == NULL)
        return hf__no_memory(err);
    pthread_mutex_init(&auth->guard, NULL);
    if (RAND_bytes(auth->secret, SECRET_SIZE) != 1) {
        hf__auth_close(auth);
        return hf__fail(err, HF_SYSTEM, "the system gives no random numbers");
    }
    auth->cookie_path = strdup(base[0] != '\0' ? base : "/");
    if (auth->cookie_path == NULL || !know(auth, tokens)) {
        hf__auth_close(auth);
        return hf__no_memory(err);
    }
    /* Cookies are shared by all ports of a host. */
    (void)snprintf(auth->cookie_name, sizeof auth->cookie_name, "holdfast_%u", port);
    *out = auth;
    return HF_OK;
}

void hf__auth_close(hf__auth *auth)
{
    if (auth == NULL)
        return;
    pthread_mutex_destroy(&auth->guard);
    free(auth->known);
    free(auth->cookie_path);
    OPENSSL_cleanse(auth, sizeof *auth);
    free(auth);
}

/* ---- sessions: "TIME.NUMBER-NONCE.DIGEST", the number of whose token it was ---- */

static bool sign(const hf__auth *auth, const char *text, char hex[SIGNATURE_SIZE])
{
    unsigned char digest[DIGEST_SIZE];

    if (!digest_of(auth, "session", text, digest))
        return false;
    write_hex(hex, digest, DIGEST_SIZE);
    return true;
}

static bool has_ended(hf__auth *auth, const char *signature)
{
    bool ended = false;

    pthread_mutex_lock(&auth->guard);
    for (size_t i = 0; !ended && i < ENDED; i++)
        ended = strcmp(auth->ended[i], signature) == 0;
    pthread_mutex_unlock(&auth->guard);
    return ended;
}

void hf__auth_logout(hf__auth *auth, const char *identity)
{
    const char *dot = strrchr(identity, '.');

    if (dot == NULL || strlen(dot + 1) != SIGNATURE_SIZE - 1)
        return; /* who sends the token with each request has no session */
    pthread_mutex_lock(&auth->guard);
    memcpy(auth->ended[auth->next_ended++ % ENDED], dot + 1, SIGNATURE_SIZE);
    pthread_mutex_unlock(&auth->guard);
}

static bool is_session(hf__auth *auth, const char *cookie, size_t *number)
{
    char text[HF__IDENTITY_MAX], hex[SIGNATURE_SIZE];
    const char *dot = strrchr(cookie, '.');
    int64_t since = 0, whose = 0;

    if (dot == NULL || strlen(cookie) >= sizeof text || strlen(dot + 1) != sizeof hex - 1)
        return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)(dot - cookie), cookie);
    if (!sign(auth, text, hex) || CRYPTO_memcmp(hex, dot + 1, sizeof hex - 1) != 0)
        return false;
    char *rest = text + strcspn(text, ".");
    *rest++ = '\0';
    rest[strcspn(rest, "-")] = '\0';
    if (hf__parse_int64(text, "time", 0, INT64_MAX, &since, NULL) != HF_OK ||
        hf__parse_int64(rest, "number", 0, (int64_t)auth->count - 1, &whose, NULL) != HF_OK)
        return false;
    *number = (size_t)whose;
    return hf__now_ms() - since < SESSION_MS && !has_ended(auth, hex);
}

void hf__auth_cookie(hf__auth *auth, size_t number, bool secure, hf__buf *out)
{
    unsigned char nonce[NONCE_SIZE];
    char hex[2 * NONCE_SIZE + 1], text[100], signature[SIGNATURE_SIZE];

    if (RAND_bytes(nonce, NONCE_SIZE) != 1) {
        out->broken = true;
        return;
    }
    write_hex(hex, nonce, NONCE_SIZE);
    (void)snprintf(text, sizeof text, "%" PRId64 ".%zu-%s", hf__now_ms(), number, hex);
    if (!sign(auth, text, signature)) {
        out->broken = true;
        return;
    }
    hf__buf_printf(out, "%s=%s.%s; Path=%s; Max-Age=%d; HttpOnly; SameSite=Strict%s",
                   auth->cookie_name, text, signature, auth->cookie_path, SESSION_MS / 1000,
                   secure ? "; Secure" : "");
}

void hf__auth_no_cookie(const hf__auth *auth, hf__buf *out)
{
    hf__buf_printf(out, "%s=; Path=%s; Max-Age=0; HttpOnly; SameSite=Strict", auth->cookie_name,
                   auth->cookie_path);
}

hf__access hf__auth_check(hf__auth *auth, struct MHD_Connection *connection, hf__viewer *viewer,
                          char identity[HF__IDENTITY_MAX])
{
    static const char scheme[] = "Bearer ";
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    const char *cookie =
        MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, auth->cookie_name);
    size_t number = 0;

    identity[0] = '\0';
    if (auth->count == 0)
        return HF__ACCESS_OPEN;
    if (given != NULL && strncasecmp(given, scheme, sizeof scheme - 1) == 0) {
        if (try_token(auth, given + sizeof scheme - 1, &number) != HF__ACCESS_GRANTED)
            return HF__ACCESS_WRONG;
        (void)snprintf(identity, HF__IDENTITY_MAX, "bearer %zu", number);
    } else {
        if (cookie == NULL || !is_session(auth, cookie, &number))
            return HF__ACCESS_NONE;
        (void)snprintf(identity, HF__IDENTITY_MAX, "%s", cookie);
    }
    *viewer = auth->known[number].viewer;
    return HF__ACCESS_GRANTED;
}

hf__access hf__auth_login(const hf__auth *auth, const char *token, size_t *number)
{
    return auth->count > 0 ? try_token(auth, token, number) : HF__ACCESS_OPEN;
}

/* ---- requests from elsewhere ---- */

void hf__auth_csrf(const hf__auth *auth, const char *identity, char csrf[HF__CSRF_SIZE])
{
    unsigned char digest[DIGEST_SIZE];

    csrf[0] = '\0';
    if (digest_of(auth, "csrf", identity, digest))
        write_hex(csrf, digest, DIGEST_SIZE);
}

bool hf__auth_csrf_fits(const hf__auth *auth, const char *identity, const char *csrf)
{
    char wanted[HF__CSRF_SIZE];

    hf__auth_csrf(auth, identity, wanted);
    return wanted[0] != '\0' && strlen(csrf) == sizeof wanted - 1 &&
           CRYPTO_memcmp(csrf, wanted, sizeof wanted - 1) == 0;
}

bool hf__is_same_origin(struct MHD_Connection *connection)
{
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");

    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return false;
    if (origin == NULL)
        return true;
    const char *authority = strstr(origin, "://");
    return authority != NULL && host != NULL && strcasecmp(authority + 3, host) == 0;
}

bool hf__is_host_ours(const hf__server *server, const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    const char *end = host + strlen(host);

    if (host[0] == '[') {
        host++;
        end = host + strcspn(host, "]");
    } else if (strchr(host, ':') != NULL) {
        end = strchr(host, ':');
    }
    size_t size = (size_t)(end - host);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == size && strncasecmp(names[i], host, size) == 0)
            return true;
    return strlen(server->listen_host) == size && strncasecmp(server->listen_host, host, size) == 0;
}

/* ---- the file with the tokens ---- */

static hf_status check_mode(int fd, const char *what, const char *path, hf_error *err)
{
    struct stat found;

    if (fstat(fd, &found) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot read %s", path);
    if (!S_ISREG(found.st_mode))
        return hf__fail(err, HF_CONFIG, "the %s %s is no file", what, path);
    if ((found.st_mode & (S_IRWXO | S_IWGRP)) == 0)
        return HF_OK;
    hf_status status = hf__fail(err, HF_CONFIG, "the %s %s is open to others (mode %03o)", what,
                                path, (unsigned)found.st_mode & 0777U);
    hf__hint(err, "chmod 600 %s", path);
    return status;
}

static hf_status add_token(const char *path, hf__tokens *tokens, const hf__viewer *viewer,
                           const char *start, size_t size, hf_error *err)
{
    bool printable = true;

    for (size_t i = 0; i < size; i++)
        printable = printable && start[i] > 0x20 && start[i] < 0x7f;
    if (!printable || size < HF__TOKEN_MIN || size > HF__TOKEN_MAX) {
        hf_status status =
            hf__fail(err, HF_CONFIG,
                     printable ? "the token in %s has %zu characters; it takes %d to %d"
                               : "the token in %s is not of printable ASCII without spaces",
                     path, size, HF__TOKEN_MIN, HF__TOKEN_MAX);
        hf__hint(err, "make one: openssl rand -hex 32 > %s", path);
        return status;
    }
    char *secret = strndup(start, size);
    if (secret == NULL ||
        !hf__grow(&tokens->items, &tokens->room, tokens->count + 1, sizeof *tokens->items)) {
        free(secret);
        return hf__no_memory(err);
    }
    tokens->items[tokens->count++] = (hf__token){*viewer, secret};
    return HF_OK;
}

enum { WORDS = 3 };
struct word {
    const char *text;
    size_t size;
};

/* How many words the line has, of which the first three are taken down. */
static size_t split(const char *line, size_t size, struct word words[WORDS])
{
    size_t count = 0;

    for (size_t at = 0; at < size;) {
        size_t start = at;
        while (at < size && line[at] != ' ' && line[at] != '\t')
            at++;
        if (at > start && count++ < WORDS)
            words[count - 1] = (struct word){line + start, at - start};
        at += at == start;
    }
    return count;
}

static bool is_word(const struct word *word, const char *text)
{
    return word->size == strlen(text) && memcmp(word->text, text, word->size) == 0;
}

static bool is_viewer_name(const struct word *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-@+";
    char name[HF__VIEWER_MAX + 1];

    if (word->size > HF__VIEWER_MAX)
        return false;
    (void)snprintf(name, sizeof name, "%.*s", (int)word->size, word->text);
    return name[strspn(name, letters)] == '\0';
}

/* NAME ROLE TOKEN */
static hf_status add_line(const char *path, size_t number, const char *line, size_t size,
                          hf__tokens *tokens, hf_error *err)
{
    struct word words[WORDS] = {{0}};
    hf__viewer viewer = {0};

    if (split(line, size, words) != WORDS)
        return hf__fail(err, HF_CONFIG, "%s:%zu is not NAME ROLE TOKEN", path, number);
    viewer.is_admin = is_word(&words[1], "admin");
    if (!viewer.is_admin && !is_word(&words[1], "read"))
        return hf__fail(err, HF_CONFIG, "%s:%zu: the role is read or admin", path, number);
    if (!is_viewer_name(&words[0]))
        return hf__fail(err, HF_CONFIG,
                        "%s:%zu: a name has at most %d letters, digits and any of ._-@+", path,
                        number, HF__VIEWER_MAX);
    (void)snprintf(viewer.name, sizeof viewer.name, "%.*s", (int)words[0].size, words[0].text);
    for (size_t i = 0; i < tokens->count; i++)
        if (strcmp(tokens->items[i].viewer.name, viewer.name) == 0 ||
            is_word(&words[2], tokens->items[i].secret))
            return hf__fail(err, HF_CONFIG, "%s:%zu has the name or the token of another line",
                            path, number);
    return add_token(path, tokens, &viewer, words[2].text, words[2].size, err);
}

/* The first line alone, or each line that is neither empty nor a comment. */
static hf_status take_tokens(const char *path, const char *text, size_t size, hf__tokens *tokens,
                             hf_error *err)
{
    const hf__viewer nameless = {.is_admin = true};
    struct word words[WORDS] = {{0}};
    hf_status status = HF_OK;
    size_t number = 1;

    if (memchr(text, '\0', size) != NULL)
        return hf__fail(err, HF_CONFIG, "the token in %s is not of printable ASCII", path);
    for (const char *line = text; status == HF_OK && line < text + size; number++) {
        size_t length = strcspn(line, "\n"), kept = length;
        while (kept > 0 && strchr(" \t\r", line[kept - 1]) != NULL)
            kept--;
        size_t start = strspn(line, " \t");
        bool is_comment = line[start] == '#' && (start + 1 >= kept || line[start + 1] == ' ');
        bool is_blank = start >= kept || is_comment;
        if (tokens->count == 0 && !is_blank && split(line, kept, words) != WORDS)
            return add_token(path, tokens, &nameless, line + start, kept - start, err);
        if (!is_blank)
            status = add_line(path, number, line, kept, tokens, err);
        line += length + (line[length] == '\n');
    }
    if (status == HF_OK && tokens->count == 0)
        return add_token(path, tokens, &nameless, "", 0, err);
    return status;
}

void hf__tokens_free(hf__tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++) {
        OPENSSL_cleanse(tokens->items[i].secret, strlen(tokens->items[i].secret));
        free(tokens->items[i].secret);
    }
    free(tokens->items);
    *tokens = (hf__tokens){0};
}

hf_status hf__secrets_read(const char *what, const char *path, hf__buf *text, hf_error *err)
{
    enum { MOST = 1 << 16 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot open the %s %s", what, path);
    hf_status status = check_mode(fd, what, path, err);
    if (status == HF_OK)
        status = hf__read_fd(fd, path, MOST, text, HF_CONFIG, err);
    close(fd);
    if (status == HF_OK && text->length > MOST)
        status = hf__fail(err, HF_CONFIG, "the %s %s has more than %d bytes", what, path, MOST);
    return status;
}

hf_status hf__tokens_read(const char *path, hf__tokens *tokens, hf_error *err)
{
    hf__buf text = {0};
    hf_status status = hf__secrets_read("token file", path, &text, err);

    if (status == HF_OK)
        status = take_tokens(path, text.data != NULL ? text.data : "", text.length, tokens, err);
    if (text.data != NULL)
        OPENSSL_cleanse(text.data, text.length);
    hf__buf_free(&text);
    return status;
}
