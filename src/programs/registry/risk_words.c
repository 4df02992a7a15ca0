/* Probabilities as people say them. Written digit by digit: the radix character of printf is the
 * locale's. */
#include "programs/registry/risk.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* About digits × 10^exponent, where digits has `count` places. */
struct rounded {
    uint64_t digits;
    int exponent;
};

static struct rounded round_to(double value, int count)
{
    int exponent = (int)floor(log10(value)) - count + 1;
    double scaled = value * pow(10, -exponent);
    struct rounded rounded = {(uint64_t)llround(scaled), exponent};

    if (rounded.digits >= (uint64_t)llround(pow(10, count))) {
        rounded.digits /= 10;
        rounded.exponent++;
    }
    return rounded;
}

const char *hf__risk_count(char *out, size_t out_size, uint64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t used = 0;

    for (int i = 0; i < length && used + 2 < out_size; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[used++] = ' ';
        out[used++] = digits[i];
    }
    if (out_size > 0)
        out[used] = '\0';
    return out;
}

/* Three places, without zeros at the end: "0.0116", "50", "12.3". */
static void write_percent(hf__buf *out, double p)
{
    struct rounded r = round_to(p * 100, 3);

    if (r.exponent >= 0) { /* 100 × 10^0 */
        hf__buf_puts(out, "more than 99.9");
        return;
    }
    for (; r.digits % 10 == 0 && r.exponent < 0; r.exponent++)
        r.digits /= 10;
    uint64_t one = 1;
    for (int i = r.exponent; i < 0; i++)
        one *= 10;
    hf__buf_printf(out, "%" PRIu64, r.digits / one);
    if (r.exponent < 0)
        hf__buf_printf(out, ".%0*" PRIu64, -r.exponent, r.digits % one);
}

static void write_rarely(hf__buf *out, double p)
{
    struct rounded r = round_to(1 / p, 2);

    hf__buf_printf(out, "practically never (1 in %" PRIu64 ".%" PRIu64 "e%d)", r.digits / 10,
                   r.digits % 10, r.exponent + 1);
}

static void write_one_in(hf__buf *out, double p)
{
    char count[32];
    struct rounded r = round_to(1 / p, 1 / p < 10 ? 1 : 2);

    for (; r.exponent > 0; r.exponent--)
        r.digits *= 10;
    hf__buf_printf(out, "about 1 in %s", hf__risk_count(count, sizeof count, r.digits));
}

static void write_words(hf__buf *out, double p)
{
    if (p < 0.4)
        write_one_in(out, p);
    else
        hf__buf_puts(out, p < 0.6 ? "as likely as not" : p < 0.9 ? "likely" : "almost certain");
    hf__buf_puts(out, " (");
    write_percent(out, p);
    hf__buf_puts(out, " %)");
}

const char *hf__risk_words(char *out, size_t out_size, double p)
{
    hf__buf text = {0};

    if (!(p > 0))
        hf__buf_puts(&text, "never");
    else if (p < 1e-300)
        hf__buf_puts(&text, "practically never");
    else if (p < 1e-9)
        write_rarely(&text, p);
    else if (p < 1)
        write_words(&text, p);
    else
        hf__buf_puts(&text, "certain");
    snprintf(out, out_size, "%s", text.broken ? "?" : text.data);
    hf__buf_free(&text);
    return out;
}
