#include "programs/top/entry.h"

#include <string.h>

#include "base/text.h"
#include "programs/top/keys.h"

enum { CTRL_U = 'U' & 0x1F, CTRL_W = 'W' & 0x1F };

static size_t encode(int32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3F));
    out[0] = (char)(leads[size] | point);
    return size;
}

static void cut(hf__entry *entry, size_t size)
{
    entry->size = size;
    entry->text[size] = '\0';
}

static void erase_character(hf__entry *entry)
{
    size_t size = entry->size;

    while (size > 0 && ((unsigned char)entry->text[size - 1] & 0xC0) == 0x80)
        size--;
    cut(entry, size > 0 ? size - 1 : 0);
}

static void erase_word(hf__entry *entry)
{
    size_t size = entry->size;

    while (size > 0 && entry->text[size - 1] == ' ')
        size--;
    while (size > 0 && entry->text[size - 1] != ' ')
        size--;
    cut(entry, size);
}

bool hf__entry_press(hf__entry *entry, int32_t key)
{
    char bytes[4];

    if (key == HF__KEY_BACKSPACE) {
        erase_character(entry);
    } else if (key == CTRL_U) {
        cut(entry, 0);
    } else if (key == CTRL_W) {
        erase_word(entry);
    } else if (key < 0x20 || key == 0x7F || key > 0x10FFFF) {
        return false;
    } else {
        size_t size = encode(key, bytes);
        if (entry->size + size < sizeof entry->text) {
            memcpy(entry->text + entry->size, bytes, size);
            cut(entry, entry->size + size);
        }
    }
    return true;
}

void hf__entry_set(hf__entry *entry, const char *text)
{
    size_t at = 0;
    size_t length = strlen(text);

    cut(entry, 0);
    while (at < length) {
        size_t start = at;
        (void)hf__utf8_next((const unsigned char *)text, length, &at);
        if (at >= sizeof entry->text)
            return;
        memcpy(entry->text + start, text + start, at - start);
        cut(entry, at);
    }
}
