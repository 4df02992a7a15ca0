#include "base/stop.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

hf_status hf__stop_init(hf__stop *stop, hf_error *err)
{
    atomic_init(&stop->reason, HF__STOP_NONE);
    stop->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return stop->fd >= 0 ? HF_OK
                         : hf__fail_errno(err, HF_SYSTEM, errno, "cannot make an event descriptor");
}

void hf__stop_destroy(hf__stop *stop)
{
    if (stop->fd >= 0)
        close(stop->fd);
    stop->fd = -1;
}

void hf__stop_set(hf__stop *stop, hf__stop_reason reason)
{
    int none = HF__STOP_NONE;
    uint64_t one = 1;

    atomic_compare_exchange_strong(&stop->reason, &none, (int)reason);
    (void)!write(stop->fd, &one, sizeof one);
}

hf__stop_reason hf__stop_why(const hf__stop *stop)
{
    return (hf__stop_reason)atomic_load(&stop->reason);
}

bool hf__stop_is_set(const hf__stop *stop)
{
    return hf__stop_why(stop) != HF__STOP_NONE;
}

hf_status hf__stop_check(const hf__stop *stop, hf_error *err)
{
    switch (hf__stop_why(stop)) {
    case HF__STOP_LOST: return hf__fail(err, HF_LOST, "the lock was lost");
    case HF__STOP_ASKED: return hf__fail(err, HF_INTERRUPTED, "told to stop");
    default: return HF_OK;
    }
}

bool hf__stop_pause(const hf__stop *stop, int ms)
{
    struct pollfd pollfd = {.fd = stop->fd, .events = POLLIN};
    int64_t deadline = hf__deadline(ms);

    while (!hf__stop_is_set(stop) && hf__left_ms(deadline) != 0)
        (void)poll(&pollfd, 1, hf__left_ms(deadline));
    return hf__stop_is_set(stop);
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
