/* Servers that fall silent while rows are sent to them, on the other side of a real connection. */
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "programs/append/target/target.h"

enum { SILENT_MS = 300, LOOKS = 3, CONNECTIONS = 16 };

/* Reads what it is sent; is_dead: and says nothing at all. */
struct server {
    int fd, port;
    bool is_dead;
    const char *listed;  /* its answer to who asks for the INSERT */
    unsigned answers_at; /* after so many of these it answers the INSERT; 0: never */
    atomic_uint looks;
    atomic_bool is_over;
    pthread_t thread, connections[CONNECTIONS];
};

struct connection {
    struct server *server;
    int fd;
};

static void answer(int fd, const char *body)
{
    char text[128];
    int size = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                        strlen(body), body);

    (void)!write(fd, text, (size_t)size);
}

/* Each request comes as a whole, or is the INSERT, whose rows do not matter. */
static void *serve(void *arg)
{
    struct connection connection = *(struct connection *)arg;
    struct server *server = connection.server;
    struct timeval patience = {.tv_usec = 20000};
    bool is_insert = false;

    free(arg);
    (void)setsockopt(connection.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (!atomic_load(&server->is_over)) {
        char text[8192];
        ssize_t got = recv(connection.fd, text, sizeof text - 1, 0);
        if (got == 0)
            break;
        text[got > 0 ? got : 0] = '\0';
        is_insert = is_insert || strstr(text, "INSERT") != NULL;
        if (is_insert && server->answers_at > 0 &&
            atomic_load(&server->looks) >= server->answers_at) {
            answer(connection.fd, "");
            server->answers_at = 0;
        }
        if (!is_insert && strstr(text, "system.processes") != NULL && !server->is_dead) {
            answer(connection.fd, server->listed);
            atomic_fetch_add(&server->looks, 1);
        }
    }
    close(connection.fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct server *server = arg;
    size_t count = 0;
    int fd;

    while (count < CONNECTIONS && (fd = accept(server->fd, NULL, NULL)) >= 0) {
        struct connection *connection = malloc(sizeof *connection);
        assert_non_null(connection);
        *connection = (struct connection){server, fd};
        assert_int_equal(pthread_create(&server->connections[count++], NULL, serve, connection), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(server->connections[i], NULL);
    return NULL;
}

static void start(struct server *server)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;

    server->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(listen(server->fd, CONNECTIONS), 0);
    server->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, accept_all, server), 0);
}

static void end(struct server *server)
{
    atomic_store(&server->is_over, true);
    (void)shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->fd);
}

/* Ends a pipe of rows once the server was asked often enough. */
struct slow {
    struct server *server;
    int fd;
};

static void *feed_slowly(void *arg)
{
    const struct slow *slow = arg;
    static const char row[] = "{\"n\":1}\n";

    (void)!write(slow->fd, row, sizeof row - 1);
    while (atomic_load(&slow->server->looks) < LOOKS)
        (void)usleep(10000);
    close(slow->fd);
    return NULL;
}

static hf_status insert(const struct server *server, const char *path, hf_error *err)
{
    hf__stop stop;
    char url[64];
    hf__target *target = NULL;
    hf__rows_input *input = NULL;
    const hf__format *format = NULL;
    const hf__target_options options = {.url = url, .stop = &stop, .silent_ms = SILENT_MS};
    const hf__statement statement = {.sql = "INSERT INTO t", .query_id = "x", .limit_ms = -1};

    assert_int_equal(hf__stop_init(&stop, NULL), HF_OK);
    (void)snprintf(url, sizeof url, "clickhouse+http://127.0.0.1:%d/d", server->port);
    assert_int_equal(hf__target_open(&options, &target, NULL), HF_OK);
    assert_int_equal(hf__format_find(NULL, &format, NULL), HF_OK);
    assert_int_equal(hf__rows_input_open(format, &path, 1, &input, NULL), HF_OK);
    hf_status status = target->ops->insert(target, &statement, format, input, NULL, err);
    assert_true(target->fault.was_sent);
    hf__rows_input_close(input);
    hf__target_close(target);
    hf__stop_destroy(&stop);
    return status;
}

static hf_status insert_file(struct server *server, hf_error *err)
{
    char path[] = "/tmp/append-silence-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0 && write(fd, "{\"n\":1}\n", 8) == 8);
    close(fd);
    start(server);
    hf_status status = insert(server, path, err);
    end(server);
    unlink(path);
    return status;
}

static void test_a_stream_that_a_server_has_swallowed_is_given_up(void **state)
{
    struct server server = {.listed = "0\n"};
    hf_error err = {0};

    (void)state;
    assert_int_equal(insert_file(&server, &err), HF_UNREACHABLE);
    assert_non_null(strstr(err.message, "has not moved for 300 ms, and no statement is there"));
}

static void test_a_server_that_answers_nothing_is_given_up(void **state)
{
    struct server server = {.is_dead = true};
    hf_error err = {0};

    (void)state;
    assert_int_equal(insert_file(&server, &err), HF_UNREACHABLE);
    assert_non_null(strstr(err.message, "has not answered anything for 300 ms"));
}

static void test_a_statement_that_the_server_lists_is_awaited(void **state)
{
    struct server server = {.listed = "1\n", .answers_at = LOOKS};
    hf_error err = {0};

    (void)state;
    assert_int_equal(insert_file(&server, &err), HF_OK);
}

static void test_rows_that_come_late_are_awaited(void **state)
{
    struct server server = {.listed = "0\n", .answers_at = LOOKS};
    struct slow slow = {.server = &server};
    hf_error err = {0};
    char path[32];
    int fds[2];
    pthread_t thread;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    slow.fd = fds[1];
    (void)snprintf(path, sizeof path, "/dev/fd/%d", fds[0]);
    start(&server);
    assert_int_equal(pthread_create(&thread, NULL, feed_slowly, &slow), 0);
    assert_int_equal(insert(&server, path, &err), HF_OK);
    pthread_join(thread, NULL);
    end(&server);
    close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_that_a_server_has_swallowed_is_given_up),
        cmocka_unit_test(test_a_server_that_answers_nothing_is_given_up),
        cmocka_unit_test(test_a_statement_that_the_server_lists_is_awaited),
        cmocka_unit_test(test_rows_that_come_late_are_awaited),
    };

    return RUN(tests);
}
