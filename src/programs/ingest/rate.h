/* A token bucket: so many a second, whoever takes them. */
#ifndef HF_INGEST_RATE_H
#define HF_INGEST_RATE_H

#include <pthread.h>
#include <stdint.h>

typedef struct hf__rate {
    pthread_mutex_t mutex;
    double per_second; /* 0: no limit */
    double burst;      /* tokens that may be saved up */
    double tokens;     /* below 0: promised to those who wait */
    int64_t at_ms;     /* when tokens were counted */
} hf__rate;

/* The bucket is full at first: a tenth of a second's worth, and one at least. */
void hf__rate_init(hf__rate *rate, double per_second, int64_t now_ms);
void hf__rate_destroy(hf__rate *rate);

/* Takes one token, and says how many ms to wait before it may be used. Any thread. */
int64_t hf__rate_take(hf__rate *rate, int64_t now_ms);

#endif
