/* Links that keep the filters of the request, and small things that all sections write alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/serve/page/parts.h"

enum { PARAMETERS = 10 };

/* A parameter of the URL. One that is empty is left out. */
struct parameter {
    const char *name, *value;
};

static void list_parameters(const hf__page_request *request, struct parameter list[PARAMETERS])
{
    list[0] = (struct parameter){"q", request->q};
    list[1] = (struct parameter){"state", request->state};
    list[2] = (struct parameter){"sort", request->sort};
    list[3] = (struct parameter){"page", request->page};
    list[4] = (struct parameter){"lock", request->lock};
    list[5] = (struct parameter){"span", request->span};
    list[6] = (struct parameter){"network", request->network};
    list[7] = (struct parameter){"event", request->event};
    list[8] = (struct parameter){"at", request->at};
    list[9] = (struct parameter){"events", request->events};
}

void hf__page_href(hf__buf *out, const hf__page_request *request, const char *fragment)
{
    struct parameter list[PARAMETERS];
    const char *separator = "?";

    list_parameters(request, list);
    hf__html(out, "href=\"%s/", request->base);
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (list[i].value[0] == '\0')
            continue;
        hf__buf_puts(out, separator);
        hf__buf_puts(out, list[i].name);
        hf__buf_puts(out, "=");
        hf__html_url(out, list[i].value);
        separator = "&amp;";
    }
    hf__buf_puts(out, fragment);
    hf__buf_puts(out, "\"");
}

static bool is_listed(const char *names, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = strstr(names, name); at != NULL; at = strstr(at + 1, name))
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

void hf__page_hidden(hf__buf *out, const hf__page_request *request, const char *except)
{
    struct parameter list[PARAMETERS];

    list_parameters(request, list);
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (list[i].value[0] == '\0' || is_listed(except, list[i].name))
            continue;
        hf__html(out, "<input type=\"hidden\" name=\"%s\" value=\"", list[i].name);
        hf__html_value(out, list[i].value);
        hf__buf_puts(out, "\">");
    }
}

size_t hf__page_index(const char *asked, size_t rows, size_t count)
{
    size_t last = count > 0 ? (count - 1) / rows : 0;
    unsigned long number = asked[0] >= '0' && asked[0] <= '9' ? strtoul(asked, NULL, 10) : 0;
    size_t index = number > 0 ? number - 1 : 0;

    return index < last ? index : last;
}

static void put_page_link(const hf__page *page, const char *what, size_t number, const char *text)
{
    hf__page_request to = *page->request;
    char digits[24], fragment[16];

    (void)snprintf(digits, sizeof digits, "%zu", number);
    (void)snprintf(fragment, sizeof fragment, "#%s", what);
    if (strcmp(what, "events") == 0)
        to.events = digits;
    else
        to.page = digits;
    hf__buf_puts(page->out, " <a ");
    hf__page_href(page->out, &to, fragment);
    hf__html(page->out, ">%s</a>", text);
}

void hf__page_pages(const hf__page *page, const char *what, size_t rows, size_t at, size_t count)
{
    hf__buf *out = page->out;
    size_t end = (at + 1) * rows < count ? (at + 1) * rows : count;

    if (count <= rows)
        return;
    hf__html(out, "<nav class=\"pages\" aria-label=\"Pages of %s\">", what);
    hf__html_number(out, (int64_t)(at * rows + 1));
    hf__buf_puts(out, " to ");
    hf__html_number(out, (int64_t)end);
    hf__buf_puts(out, " of ");
    hf__html_number(out, (int64_t)count);
    if (at > 0)
        put_page_link(page, what, at, "Previous");
    if (end < count)
        put_page_link(page, what, at + 2, "Next");
    hf__buf_puts(out, "</nav>");
}

void hf__page_lock_href(const hf__page *page, hf_space space, int64_t key)
{
    hf__page_request to = *page->request;
    char ref[HF__REF_ROOM];
    char fragment[HF__REF_ROOM + 8] = "#lock-";

    to.lock = hf__lock_ref(ref, space, key);
    strncat(fragment, ref, sizeof fragment - sizeof "#lock-");
    hf__page_href(page->out, &to, fragment);
}

void hf__page_who(hf__buf *out, const char *application, const char *host, int pid, int backend)
{
    hf__html(out, "%.80s", application[0] != '\0' ? application : "unnamed");
    if (host[0] != '\0')
        hf__html(out, " <span class=\"on\">on %.80s</span>", host);
    if (pid != 0)
        hf__html(out, "<span class=\"on\">, pid %d</span>", pid);
    else if (backend != 0)
        hf__html(out, "<span class=\"on\">, backend %d</span>", backend);
}

void hf__page_cell(hf__buf *out, const char *title, bool is_number, bool is_blank)
{
    hf__html(out, "<td data-label=\"%s\"", title);
    if (is_number || is_blank)
        hf__html(out, " class=\"%s%s\"", is_number ? "num " : "", is_blank ? "blank" : "");
    hf__buf_puts(out, ">");
}

void hf__page_count(hf__buf *out, size_t count, const char *one, const char *many)
{
    hf__html_number(out, (int64_t)count);
    hf__html(out, " %s", count == 1 ? one : many);
}
