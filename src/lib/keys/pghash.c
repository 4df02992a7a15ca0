/* Bob Jenkins's lookup3 in the form PostgreSQL gives it: its own start value, and a tail that keeps
 * the low byte of the third word for the length. */
#include "lib/keys/keys.h"

struct state {
    uint32_t a, b, c;
};

static uint32_t rotate(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

static void mix(struct state *s)
{
    s->a = (s->a - s->c) ^ rotate(s->c, 4);
    s->c += s->b;
    s->b = (s->b - s->a) ^ rotate(s->a, 6);
    s->a += s->c;
    s->c = (s->c - s->b) ^ rotate(s->b, 8);
    s->b += s->a;
    s->a = (s->a - s->c) ^ rotate(s->c, 16);
    s->c += s->b;
    s->b = (s->b - s->a) ^ rotate(s->a, 19);
    s->a += s->c;
    s->c = (s->c - s->b) ^ rotate(s->b, 4);
    s->b += s->a;
}

static void finish(struct state *s)
{
    s->c = (s->c ^ s->b) - rotate(s->b, 14);
    s->a = (s->a ^ s->c) - rotate(s->c, 11);
    s->b = (s->b ^ s->a) - rotate(s->a, 25);
    s->c = (s->c ^ s->b) - rotate(s->b, 16);
    s->a = (s->a ^ s->c) - rotate(s->c, 4);
    s->b = (s->b ^ s->a) - rotate(s->a, 14);
    s->c = (s->c ^ s->b) - rotate(s->b, 24);
}

/* Up to four bytes, little endian whatever the machine. */
static uint32_t word_of(const unsigned char *bytes, size_t count)
{
    uint32_t word = 0;

    for (size_t i = 0; i < count && i < 4; i++)
        word |= (uint32_t)bytes[i] << (8 * i);
    return word;
}

static struct state hash(const unsigned char *bytes, size_t size)
{
    uint32_t start = UINT32_C(0x9e3779b9) + (uint32_t)size + 3923095;
    struct state s = {start, start, start};

    for (; size >= 12; bytes += 12, size -= 12) {
        s.a += word_of(bytes, 4);
        s.b += word_of(bytes + 4, 4);
        s.c += word_of(bytes + 8, 4);
        mix(&s);
    }
    s.a += word_of(bytes, size);
    if (size > 4)
        s.b += word_of(bytes + 4, size - 4);
    if (size > 8)
        s.c += word_of(bytes + 8, size - 8) << 8;
    finish(&s);
    return s;
}

uint32_t hf__pg_hash(const unsigned char *bytes, size_t size)
{
    return hash(bytes, size).c;
}

uint64_t hf__pg_hash_extended(const unsigned char *bytes, size_t size)
{
    struct state s = hash(bytes, size);

    return (uint64_t)s.b << 32 | s.c;
}
