/* Words as people write them: durations, moments, numbers and labels. */
#include "fuzz.h"

#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "holdfast/holdfast.h"
#include "lib/keys/keys.h"

static void read_duration(const char *text)
{
    char shown[64];
    int64_t ms = -1;
    hf_error err = {0};

    if (hf__parse_duration(text, &ms, &err) != HF_OK) {
        require(err.message[0] != '\0' && err.hint[0] != '\0', "a refusal says nothing");
        return;
    }
    require(ms >= 0 && ms <= HF__DURATION_MAX_MS, "a duration is outside");
    require(hf__show_duration(shown, sizeof shown, ms)[0] != '\0', "it cannot be shown");
}

static void read_time(const char *text, size_t size)
{
    char shown[HF__TIME_SIZE];
    int64_t us = 0;
    int64_t again = 0;

    if (!hf__parse_time((hf__slice){text, size}, &us))
        return;
    require(us >= HF__TIME_FIRST_US - INT64_C(86400000000) &&
                us <= HF__TIME_LAST_US + INT64_C(86400000000) + 1,
            "a moment is outside");
    hf__show_time(shown, us, 6);
    if (us > HF__TIME_FIRST_US + INT64_C(366) * 86400000000 && us < HF__TIME_LAST_US)
        require(hf__parse_time((hf__slice){shown, strlen(shown)}, &again) && again == us,
                "a moment is shown as another");
}

static void read_number(const char *text)
{
    char shown[32];
    int64_t number = 0;

    if (hf__parse_int64(text, "it", INT64_MIN, INT64_MAX, &number, NULL) != HF_OK)
        return;
    (void)snprintf(shown, sizeof shown, "%lld", (long long)number);
    const char *digits = text + (text[0] == '-' || text[0] == '+' ? 1 : 0);
    digits += strspn(digits, "0");
    const char *own = shown + (shown[0] == '-' ? 1 : 0);
    require(strcmp(*digits != '\0' ? digits : "0", own) == 0, "it is another number");
}

static void read_label(const uint8_t *data, size_t size)
{
    char shown[48];
    hf_error err = {0};

    for (int derivation = 0; derivation < 12; derivation++) {
        int64_t key[2] = {0, 0};
        hf_derivation how = (hf_derivation)derivation;
        hf_status status = hf_key_derive(how, data, size, &key[0], &err);
        require(status == hf_key_derive(how, data, size, &key[1], NULL) && key[0] == key[1],
                "a key is two");
        uint32_t classid = 0, objid = 0;
        hf_key_split(key[0], &classid, &objid);
        require(hf_key_join(classid, objid) == key[0], "a key is torn");
    }
    hf__show(shown, sizeof shown, data, size);
    require(strlen(shown) < sizeof shown && hf__utf8_valid(shown, strlen(shown)),
            "no text is shown");
    for (size_t at = 0; shown[at] != '\0';) {
        int32_t point = hf__utf8_next((const unsigned char *)shown, strlen(shown), &at);
        require(point >= 0x20 && !(point >= 0x7f && point < 0xa0), "a control character is shown");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);

    require(text != NULL, "out of memory");
    read_duration(text);
    read_time(text, strlen(text));
    read_number(text);
    read_label(data, size);
    free(text);
    return 0;
}
