#include "base/stop.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

hf_status hf__stop_init(hf__stop *stop, hf_error *err)
{
    atomic_init(&stop->requested, false);
    stop->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return stop->fd >= 0 ? HF_OK
                         : hf__fail_errno(err, HF_SYSTEM, errno, "cannot make an event descriptor");
}

void hf__stop_request(hf__stop *stop)
{
    uint64_t one = 1;
    atomic_store(&stop->requested, true);
    (void)!write(stop->fd, &one, sizeof one);
}

void hf__stop_destroy(hf__stop *stop)
{
    if (stop->fd >= 0)
        close(stop->fd);
    stop->fd = -1;
}

bool hf__stop_pause(const hf__stop *stop, int ms)
{
    struct pollfd pollfd = {.fd = stop->fd, .events = POLLIN};
    int64_t deadline = hf__deadline(ms);
    while (!atomic_load(&stop->requested) && hf__left_ms(deadline) > 0)
        (void)poll(&pollfd, 1, hf__left_ms(deadline));
    return atomic_load(&stop->requested);
}

int hf__backoff_ms(unsigned failures, int most_ms)
{
    int ms = 1000;
    while (failures > 1 && ms < most_ms) {
        ms *= 2;
        failures--;
    }
    return ms < most_ms ? ms : most_ms;
}
