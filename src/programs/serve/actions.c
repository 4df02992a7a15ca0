/* What the page posts: the token, the end of a session. */
#include <string.h>
#include <strings.h>

#include "programs/serve/http.h"
#include "programs/serve/render.h"

#define HTML "text/html; charset=utf-8"

/* Nobody has a session yet: what binds it is that only this process can have made it. */
static const char nobody[] = "login";

static hf__answer *login_page(const hf__exchange *exchange, int status, bool wrong)
{
    char csrf[HF__CSRF_SIZE];
    hf__buf text = {0};

    hf__auth_csrf(exchange->server->auth, nobody, csrf);
    hf__render_login(csrf, wrong, &text);
    return hf__answer_make(status, HTML, "no-store", &text);
}

hf__answer *hf__act_login_form(hf__exchange *exchange, hf__problem *problem)
{
    (void)problem;
    if (exchange->access == HF__ACCESS_OPEN || exchange->access == HF__ACCESS_GRANTED)
        return hf__answer_redirect("/");
    return login_page(exchange, exchange->path[0] == '/' && exchange->path[1] == '\0' ? 401 : 200,
                      false);
}

/* TLS ends in front of us, if anywhere. */
static bool is_over_tls(const hf__exchange *exchange)
{
    const char *scheme = hf__header(exchange, "X-Forwarded-Proto");

    return scheme != NULL && strcasecmp(scheme, "https") == 0;
}

static hf__answer *with_cookie(const char *location, hf__buf *cookie)
{
    hf__answer *answer = cookie->broken ? NULL : hf__answer_redirect(location);

    if (answer != NULL && !hf__answer_add(answer, "Set-Cookie", cookie->data)) {
        hf__answer_release(answer);
        answer = NULL;
    }
    hf__buf_free(cookie);
    return answer;
}

hf__answer *hf__act_login(hf__exchange *exchange, hf__problem *problem)
{
    hf__auth *auth = exchange->server->auth;
    hf__buf cookie = {0};

    if (!hf__is_same_origin(exchange->connection) ||
        !hf__auth_csrf_fits(auth, nobody, hf__asked(exchange, "csrf"))) {
        hf__refuse(problem, 403, "the form is not of this server, or older than it; load it again");
        return NULL;
    }
    switch (hf__auth_login(auth, hf__asked(exchange, "token"))) {
    case HF__ACCESS_OPEN: return hf__answer_redirect("/");
    case HF__ACCESS_GRANTED:
        hf__auth_cookie(auth, is_over_tls(exchange), &cookie);
        return with_cookie("/", &cookie);
    default: return login_page(exchange, 401, true);
    }
}

hf__answer *hf__act_logout(hf__exchange *exchange, hf__problem *problem)
{
    hf__auth *auth = exchange->server->auth;
    hf__buf cookie = {0};

    if (!hf__is_same_origin(exchange->connection) ||
        !hf__auth_csrf_fits(auth, exchange->identity, hf__asked(exchange, "csrf"))) {
        hf__refuse(problem, 403, "the form is not of this session; load the page again");
        return NULL;
    }
    hf__auth_logout(auth, exchange->identity);
    hf__auth_no_cookie(auth, &cookie);
    return with_cookie("/login", &cookie);
}
