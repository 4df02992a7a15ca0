/* process ROUNDS COMMAND... -- CONTROL...: seconds from spawning each to its end, in turns. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static double run(char **command)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int64_t began = bench_now_ns();
    int failed = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
    if (failed)
        bench_die(command[0], strerror(failed));
    if (waitpid(pid, &status, 0) < 0)
        bench_die(command[0], strerror(errno));
    double took = (double)(bench_now_ns() - began) / 1e9;
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0)
        bench_die(command[0], "it failed");
    return took;
}

int main(int argc, char **argv)
{
    char **control = NULL;
    for (int i = argc - 1; i > 2; i--) /* the last "--": the command may have one of its own */
        if (!control && strcmp(argv[i], "--") == 0) {
            argv[i] = NULL;
            control = argv + i + 1;
        }
    if (!control || !*control)
        bench_die("usage", "process ROUNDS COMMAND... -- CONTROL...");
    long rounds = strtol(argv[1], NULL, 10);
    for (long i = -3; i < rounds; i++) {
        double library = run(argv + 2);
        double bare = run(control);
        if (i >= 0)
            bench_print(library, bare);
    }
    return 0;
}
