/* One request at a time against a server that answers as it is told. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http.h"

struct server {
    int fd;
    char url[64];
    const char *reply;
    char request[4096]; /* what arrived */
    pthread_t thread;
};

static void *answer_once(void *arg)
{
    struct server *server = arg;
    size_t size = 0;
    int fd = accept(server->fd, NULL, NULL);

    while (fd >= 0 && strstr(server->request, "\r\n\r\n") == NULL) {
        ssize_t got = read(fd, server->request + size, sizeof server->request - 1 - size);
        if (got <= 0)
            break;
        size += (size_t)got;
        server->request[size] = '\0';
    }
    if (fd >= 0 && send(fd, server->reply, strlen(server->reply), MSG_NOSIGNAL) < 0)
        server->request[0] = '\0';
    close(fd);
    return NULL;
}

/* On a port of its own; it answers one request. reply NULL: nobody listens. */
static void start(struct server *server, const char *reply)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    *server = (struct server){.fd = socket(AF_INET, SOCK_STREAM, 0), .reply = reply};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d/",
                   ntohs(address.sin_port));
    if (reply == NULL)
        return;
    assert_int_equal(listen(server->fd, 1), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, answer_once, server), 0);
}

static void end(struct server *server)
{
    if (server->reply != NULL)
        pthread_join(server->thread, NULL);
    close(server->fd);
}

static hf_status ask(hf__http_call *call, const char *url, hf__buf *answer, size_t answer_max)
{
    hf__http_call_begin(call, answer, answer_max);
    assert_int_equal(curl_easy_setopt(call->easy, CURLOPT_URL, url), CURLE_OK);
    hf__http_call_end(call, curl_easy_perform(call->easy));
    return hf__http_call_status(call);
}

static const hf__http_options nobody = {.connect_ms = 5000};

static void test_an_answer_is_kept_with_its_status(void **state)
{
    struct server server;
    hf__http_call call;
    hf__buf answer = {0};

    (void)state;
    start(&server, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nempty");
    assert_true(hf__http_call_open(&call, &nobody));
    hf__buf_puts(&answer, "of the request before");
    assert_int_equal(ask(&call, server.url, &answer, 5), HF_OK);
    end(&server);
    assert_int_equal(call.response, 404);
    assert_string_equal(answer.data, "empty");
    assert_non_null(strstr(server.request, "User-Agent: holdfast/"));
    assert_null(strstr(server.request, "Authorization"));
    hf__http_call_close(&call);
    hf__buf_free(&answer);
}

static void test_a_user_is_named_to_the_server(void **state)
{
    const hf__http_options options = {.connect_ms = 5000, .user = "ada", .password = "secret"};
    struct server server;
    hf__http_call call;
    hf__buf answer = {0};

    (void)state;
    start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_true(hf__http_call_open(&call, &options));
    assert_int_equal(ask(&call, server.url, &answer, 100), HF_OK);
    end(&server);
    assert_non_null(strstr(server.request, "Authorization: Basic YWRhOnNlY3JldA=="));
    hf__http_call_close(&call);
    hf__buf_free(&answer);
}

static void test_an_answer_that_is_too_large_ends_the_request(void **state)
{
    struct server server;
    hf__http_call call;
    hf__buf answer = {0};

    (void)state;
    start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n123456");
    assert_true(hf__http_call_open(&call, &nobody));
    assert_int_equal(ask(&call, server.url, &answer, 5), HF_BAD_DATA);
    end(&server);
    assert_true(call.is_too_large);

    /* The next one begins anew. */
    start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n123456");
    assert_int_equal(ask(&call, server.url, &answer, 6), HF_OK);
    end(&server);
    assert_string_equal(answer.data, "123456");
    hf__http_call_close(&call);
    hf__buf_free(&answer);
}

static void test_a_server_that_is_not_there_may_come_back(void **state)
{
    struct server server;
    hf__http_call call;
    hf__buf answer = {0};

    (void)state;
    start(&server, NULL);
    assert_true(hf__http_call_open(&call, &nobody));
    assert_int_equal(ask(&call, server.url, &answer, 100), HF_UNREACHABLE);
    assert_int_equal(call.response, 0);
    assert_true(strlen(hf__http_call_trouble(&call)) > 0);
    end(&server);
    hf__http_call_close(&call);
    hf__buf_free(&answer);
}

static void test_an_answer_that_was_cut_may_come_whole(void **state)
{
    struct server server;
    hf__http_call call;
    hf__buf answer = {0};

    (void)state;
    start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n123456");
    assert_true(hf__http_call_open(&call, &nobody));
    assert_int_equal(ask(&call, server.url, &answer, 100), HF_UNREACHABLE);
    end(&server);
    hf__http_call_close(&call);
    hf__buf_free(&answer);
}

static void test_an_address_that_is_none_is_a_fault_of_ours(void **state)
{
    hf__http_call call;
    hf__buf answer = {0};

    (void)state;
    assert_true(hf__http_call_open(&call, &nobody));
    assert_int_equal(ask(&call, "http://[", &answer, 100), HF_CONFIG);
    assert_int_equal(ask(&call, "file:///etc/passwd", &answer, 100), HF_UNREACHABLE);
    assert_int_equal(answer.length, 0);
    hf__http_call_close(&call);
    hf__http_call_close(&call);
    hf__buf_free(&answer);
}

static void test_a_part_of_an_address_is_ours_to_free(void **state)
{
    CURLU *url = curl_url();

    (void)state;
    assert_int_equal(curl_url_set(url, CURLUPART_URL, "http://ada@host:81/a%20b", 0), CURLUE_OK);
    char *path = hf__url_part(url, CURLUPART_PATH, CURLU_URLDECODE);
    char *user = hf__url_part(url, CURLUPART_USER, 0);
    assert_string_equal(path, "/a b");
    assert_string_equal(user, "ada");
    assert_null(hf__url_part(url, CURLUPART_PASSWORD, 0));
    free(path);
    free(user);
    curl_url_cleanup(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_kept_with_its_status),
        cmocka_unit_test(test_a_user_is_named_to_the_server),
        cmocka_unit_test(test_an_answer_that_is_too_large_ends_the_request),
        cmocka_unit_test(test_a_server_that_is_not_there_may_come_back),
        cmocka_unit_test(test_an_answer_that_was_cut_may_come_whole),
        cmocka_unit_test(test_an_address_that_is_none_is_a_fault_of_ours),
        cmocka_unit_test(test_a_part_of_an_address_is_ours_to_free),
    };
    return RUN(tests);
}
