#include "unit.h"

#include <string.h>

#include "holdfast/holdfast.h"

static void test_every_status_has_its_name_and_text(void **state)
{
    (void)state;
#define X(name, number, text)                                                                      \
    assert_int_equal(HF_##name, number);                                                           \
    assert_string_equal(hf_status_name(HF_##name), "HF_" #name);                                   \
    assert_string_equal(hf_status_text(HF_##name), text);
    HF_STATUS_MAP(X)
#undef X
}

static void test_an_unknown_status_is_no_crash(void **state)
{
    (void)state;
    assert_non_null(hf_status_name((hf_status)9999));
    assert_non_null(hf_status_text((hf_status)-1));
}

static void test_the_version_is_the_headers(void **state)
{
    (void)state;
    assert_string_equal(hf_version(), HF_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status_has_its_name_and_text),
        cmocka_unit_test(test_an_unknown_status_is_no_crash),
        cmocka_unit_test(test_the_version_is_the_headers),
    };
    return RUN(tests);
}
