#include "base/halt.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

hf_status hf__halt_init(hf__halt *halt, hf_error *err)
{
    atomic_init(&halt->reason, HF__GO_ON);
    halt->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return halt->fd >= 0 ? HF_OK
                         : hf__fail_errno(err, HF_SYSTEM, errno, "cannot make an event descriptor");
}

void hf__halt_destroy(hf__halt *halt)
{
    if (halt->fd >= 0)
        close(halt->fd);
    halt->fd = -1;
}

void hf__halt_set(hf__halt *halt, hf__halt_reason reason)
{
    int none = HF__GO_ON;
    uint64_t one = 1;

    atomic_compare_exchange_strong(&halt->reason, &none, (int)reason);
    (void)!write(halt->fd, &one, sizeof one);
}

hf__halt_reason hf__halt_get(const hf__halt *halt)
{
    return (hf__halt_reason)atomic_load(&halt->reason);
}

hf_status hf__halt_check(const hf__halt *halt, hf_error *err)
{
    switch (hf__halt_get(halt)) {
    case HF__HALT_LOST: return hf__fail(err, HF_LOST, "the lock was lost");
    case HF__HALT_ASKED: return hf__fail(err, HF_INTERRUPTED, "told to stop");
    default: return HF_OK;
    }
}
