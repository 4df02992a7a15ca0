#include "programs/ingest/rate.h"

static const double burst_seconds = 0.1;

void hf__rate_init(hf__rate *rate, double per_second, int64_t now_ms)
{
    double burst = per_second * burst_seconds;
    pthread_mutex_init(&rate->mutex, NULL);
    rate->per_second = per_second;
    rate->burst = burst > 1 ? burst : 1;
    rate->tokens = rate->burst;
    rate->at_ms = now_ms;
}

void hf__rate_destroy(hf__rate *rate)
{
    pthread_mutex_destroy(&rate->mutex);
}

/* A clock that stands still or goes back adds nothing. */
static void fill(hf__rate *rate, int64_t now_ms)
{
    if (now_ms <= rate->at_ms)
        return;
    rate->tokens += (double)(now_ms - rate->at_ms) * rate->per_second / 1000;
    if (rate->tokens > rate->burst)
        rate->tokens = rate->burst;
    rate->at_ms = now_ms;
}

int64_t hf__rate_take(hf__rate *rate, int64_t now_ms)
{
    double lacking = 0;
    if (rate->per_second <= 0)
        return 0;
    pthread_mutex_lock(&rate->mutex);
    fill(rate, now_ms);
    rate->tokens -= 1;
    lacking = -rate->tokens;
    pthread_mutex_unlock(&rate->mutex);
    return lacking > 0 ? (int64_t)(lacking * 1000 / rate->per_second) + 1 : 0;
}
