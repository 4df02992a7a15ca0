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
    bool has_token;
    unsigned char secret[SECRET_SIZE];
    unsigned char token_digest[DIGEST_SIZE];
    char cookie_name[32];
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
 * Takes equally long for every wrong token, whatever its length. Wrong tokens do not bar anybody:
 * a token is too long to be guessed, and behind a proxy everybody has the same address.
 */
static hf__access try_token(const hf__auth *auth, const char *token)
{
    unsigned char digest[DIGEST_SIZE];
    bool is_right = digest_of(auth, "token", token, digest) &&
                    CRYPTO_memcmp(digest, auth->token_digest, DIGEST_SIZE) == 0;

    return is_right ? HF__ACCESS_GRANTED : HF__ACCESS_WRONG;
}

hf_status hf__auth_open(const char *token, unsigned port, hf__auth **out, hf_error *err)
{
    hf__auth *auth = calloc(1, sizeof *auth);

    if (auth == NULL)
        return hf__no_memory(err);
    if (RAND_bytes(auth->secret, SECRET_SIZE) != 1) {
        free(auth);
        return hf__fail(err, HF_SYSTEM, "the system gives no random numbers");
    }
    auth->has_token = token != NULL;
    if (token != NULL && !digest_of(auth, "token", token, auth->token_digest)) {
        free(auth);
        return hf__no_memory(err);
    }
    /* Cookies are shared by all ports of a host. */
    (void)snprintf(auth->cookie_name, sizeof auth->cookie_name, "holdfast_%u", port);
    pthread_mutex_init(&auth->guard, NULL);
    *out = auth;
    return HF_OK;
}

void hf__auth_close(hf__auth *auth)
{
    if (auth == NULL)
        return;
    pthread_mutex_destroy(&auth->guard);
    OPENSSL_cleanse(auth, sizeof *auth);
    free(auth);
}

/* ---- sessions: "TIME.NONCE.DIGEST" ---- */

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

static bool is_session(hf__auth *auth, const char *cookie)
{
    char text[HF__IDENTITY_MAX], hex[SIGNATURE_SIZE];
    const char *dot = strrchr(cookie, '.');
    int64_t since = 0;

    if (dot == NULL || strlen(cookie) >= sizeof text || strlen(dot + 1) != sizeof hex - 1)
        return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)(dot - cookie), cookie);
    if (!sign(auth, text, hex) || CRYPTO_memcmp(hex, dot + 1, sizeof hex - 1) != 0)
        return false;
    text[strcspn(text, ".")] = '\0';
    if (hf__parse_int64(text, "time", 0, INT64_MAX, &since, NULL) != HF_OK)
        return false;
    return hf__now_ms() - since < SESSION_MS && !has_ended(auth, hex);
}

void hf__auth_cookie(hf__auth *auth, bool secure, hf__buf *out)
{
    unsigned char nonce[NONCE_SIZE];
    char hex[2 * NONCE_SIZE + 1], text[80], signature[SIGNATURE_SIZE];

    if (RAND_bytes(nonce, NONCE_SIZE) != 1) {
        out->broken = true;
        return;
    }
    write_hex(hex, nonce, NONCE_SIZE);
    (void)snprintf(text, sizeof text, "%" PRId64 ".%s", hf__now_ms(), hex);
    if (!sign(auth, text, signature)) {
        out->broken = true;
        return;
    }
    hf__buf_printf(out, "%s=%s.%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s",
                   auth->cookie_name, text, signature, SESSION_MS / 1000, secure ? "; Secure" : "");
}

void hf__auth_no_cookie(const hf__auth *auth, hf__buf *out)
{
    hf__buf_printf(out, "%s=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict", auth->cookie_name);
}

hf__access hf__auth_check(hf__auth *auth, struct MHD_Connection *connection,
                          char identity[HF__IDENTITY_MAX])
{
    static const char scheme[] = "Bearer ";
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    const char *cookie =
        MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, auth->cookie_name);

    identity[0] = '\0';
    if (!auth->has_token)
        return HF__ACCESS_OPEN;
    if (given != NULL && strncasecmp(given, scheme, sizeof scheme - 1) == 0) {
        (void)snprintf(identity, HF__IDENTITY_MAX, "bearer");
        return try_token(auth, given + sizeof scheme - 1);
    }
    if (cookie == NULL || !is_session(auth, cookie))
        return HF__ACCESS_NONE;
    (void)snprintf(identity, HF__IDENTITY_MAX, "%s", cookie);
    return HF__ACCESS_GRANTED;
}

hf__access hf__auth_login(const hf__auth *auth, const char *token)
{
    return auth->has_token ? try_token(auth, token) : HF__ACCESS_OPEN;
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

/* ---- the file with the token ---- */

static hf_status check_mode(int fd, const char *path, hf_error *err)
{
    struct stat found;

    if (fstat(fd, &found) != 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot read %s", path);
    if (!S_ISREG(found.st_mode))
        return hf__fail(err, HF_CONFIG, "the token file %s is no file", path);
    if ((found.st_mode & (S_IRWXO | S_IWGRP)) == 0)
        return HF_OK;
    hf_status status = hf__fail(err, HF_CONFIG, "the token file %s is open to others (mode %03o)",
                                path, (unsigned)found.st_mode & 0777U);
    hf__hint(err, "chmod 600 %s", path);
    return status;
}

/* Takes the first line, without the spaces around it. */
static hf_status take_token(const char *path, char *text, size_t size, char **token, hf_error *err)
{
    char *start = text + strspn(text, " \t");
    char *end = start + strcspn(start, "\r\n");

    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    bool printable = memchr(text, '\0', size) == NULL;
    for (const char *at = start; at < end; at++)
        printable = printable && *at > 0x20 && *at < 0x7f;
    if (!printable || end - start < HF__TOKEN_MIN || end - start > HF__TOKEN_MAX) {
        hf_status status =
            hf__fail(err, HF_CONFIG,
                     printable ? "the token in %s has %zu characters; it takes %d to %d"
                               : "the token in %s is not of printable ASCII without spaces",
                     path, (size_t)(end - start), HF__TOKEN_MIN, HF__TOKEN_MAX);
        hf__hint(err, "make one: openssl rand -hex 32 > %s", path);
        return status;
    }
    *token = strndup(start, (size_t)(end - start));
    return *token != NULL ? HF_OK : hf__no_memory(err);
}

hf_status hf__token_read(const char *path, char **token, hf_error *err)
{
    hf__buf text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *token = NULL;
    if (fd < 0)
        return hf__fail_errno(err, HF_CONFIG, errno, "cannot open the token file %s", path);
    hf_status status = check_mode(fd, path, err);
    if (status == HF_OK)
        status = hf__read_fd(fd, path, 4096, &text, HF_CONFIG, err);
    close(fd);
    if (status == HF_OK)
        status =
            take_token(path, text.data != NULL ? text.data : (char[]){""}, text.length, token, err);
    hf__buf_free(&text);
    return status;
}
