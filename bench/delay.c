/*
 * delay TARGET-PORT MICROSECONDS: a TCP proxy on a loopback port of its own, which it prints, that
 * holds every piece back for so long in each direction. Ends with its standard input.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

struct pipe {
    int from, to;
    long delay_us;
};

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static bool write_all(int to, const char *data, ssize_t size)
{
    while (size > 0) {
        ssize_t written = write(to, data, (size_t)size);
        if (written <= 0)
            return false;
        data += written;
        size -= written;
    }
    return true;
}

static void *forward(void *arg)
{
    struct pipe pipe = *(struct pipe *)arg;
    struct timespec delay = {.tv_nsec = pipe.delay_us * 1000};
    char data[65536];
    ssize_t size;
    free(arg);
    while ((size = read(pipe.from, data, sizeof data)) > 0) {
        (void)nanosleep(&delay, NULL);
        if (!write_all(pipe.to, data, size))
            break;
    }
    (void)shutdown(pipe.to, SHUT_WR);
    return NULL;
}

static void start(int from, int to, long delay_us)
{
    pthread_t thread;
    int one = 1;
    struct pipe *pipe = malloc(sizeof *pipe);
    if (!pipe)
        bench_die("memory", "out of it");
    *pipe = (struct pipe){from, to, delay_us};
    (void)setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (pthread_create(&thread, NULL, forward, pipe) != 0)
        bench_die("thread", "cannot start one");
    pthread_detach(thread);
}

static void *end_with_input(void *arg)
{
    char ignored;
    (void)arg;
    while (read(STDIN_FILENO, &ignored, 1) > 0)
        ;
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        bench_die("usage", "bench_delay TARGET-PORT MICROSECONDS");
    pthread_t thread;
    struct sockaddr_in address = loopback(0), target = loopback(atoi(argv[1]));
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 64) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        bench_die("socket", "cannot listen");
    printf("%d\n", ntohs(address.sin_port));
    (void)fflush(stdout);
    if (pthread_create(&thread, NULL, end_with_input, NULL) != 0)
        bench_die("thread", "cannot start one");
    for (;;) {
        int client = accept(listener, NULL, NULL), server = socket(AF_INET, SOCK_STREAM, 0);
        if (client < 0 || connect(server, (struct sockaddr *)&target, sizeof target) != 0)
            bench_die("socket", "cannot connect");
        start(client, server, atol(argv[2]));
        start(server, client, atol(argv[2]));
    }
}
