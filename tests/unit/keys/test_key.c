#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/holdfast.h"

static const hf_derivation columns[] = {HF_SHA256,     HF_FNV1A64,  HF_FNV1A32,
                                        HF_FNV1A32_JS, HF_HASHTEXT, HF_HASHTEXTEXTENDED};

/* Their columns in library_keys.tsv, whose values come from the libraries themselves. */
static const hf_derivation library_columns[] = {HF_CRC32,
                                                HF_CRC32_SQLX,
                                                HF_MD5,
                                                HF_JAVA_HASHCODE,
                                                HF_WITH_ADVISORY_LOCK,
                                                HF_DISTRIBUTEDLOCK_ASCII,
                                                HF_DISTRIBUTEDLOCK_HASH};

enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static int64_t derive(hf_derivation derivation, const void *label, size_t size)
{
    hf_error err = {0};
    int64_t key = 0;

    if (hf_key_derive(derivation, label, size, &key, &err) != HF_OK)
        fail_msg("%s: %s", hf_derivation_name(derivation), err.message);
    return key;
}

static void check_vector(char *line)
{
    char *rest = line;
    char *label = strsep(&rest, "\t");
    size_t size = strlen(label);

    /* The vectors need no JSON escapes. */
    assert_null(strchr(label, '\\'));
    assert_true(size >= 2 && label[0] == '"' && label[size - 1] == '"');
    for (int i = 0; i < COLUMN_COUNT; i++) {
        const char *wanted = strsep(&rest, "\t\n");
        int64_t key = derive(columns[i], label + 1, size - 2);
        assert_non_null(wanted);
        if (key != strtoll(wanted, NULL, 10))
            fail_msg("%s of %s is %s, not %" PRId64, hf_derivation_name(columns[i]), label, wanted,
                     key);
    }
}

static void test_the_vectors_hold(void **state)
{
    char path[4096];
    char line[4096];
    int count = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/keys.tsv", getenv("HOLDFAST_VECTORS"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    for (; fgets(line, sizeof line, file) != NULL; count++)
        check_vector(line);
    fclose(file);
    assert_int_equal(count, 16);
}

static void check_library_key(hf_derivation derivation, const char *label, size_t size,
                              const char *wanted)
{
    char found[64] = "-";
    uint32_t first, second;
    int64_t key = 0;

    if (hf_key_derive(derivation, label, size, &key, NULL) == HF_OK) {
        hf_key_split(key, &first, &second);
        if (hf_derivation_space(derivation) == HF_PAIR)
            snprintf(found, sizeof found, "%" PRId32 ",%" PRId32, (int32_t)first, (int32_t)second);
        else
            snprintf(found, sizeof found, "%" PRId64, key);
    }
    if (strcmp(found, wanted) != 0)
        fail_msg("%s of %s is %s, not %s", hf_derivation_name(derivation), label, wanted, found);
}

static void test_the_keys_of_libraries_are_theirs(void **state)
{
    char path[4096], line[4096];
    int count = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/library_keys.tsv", getenv("HOLDFAST_VECTORS"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    for (; fgets(line, sizeof line, file) != NULL; count++) {
        char *rest = line;
        char *label = strsep(&rest, "\t");
        for (size_t i = 0; i < sizeof library_columns / sizeof *library_columns; i++) {
            const char *wanted = strsep(&rest, "\t\n");
            assert_non_null(wanted);
            check_library_key(library_columns[i], label + 1, strlen(label) - 2, wanted);
        }
    }
    fclose(file);
    assert_int_equal(count, 22);
}

static void test_a_label_is_ascii_up_to_its_end_and_to_del(void **state)
{
    hf_error err = {0};
    int64_t key = 0;

    (void)state;
    assert_true(derive(HF_DISTRIBUTEDLOCK_ASCII, "a\xff", 1) ==
                derive(HF_DISTRIBUTEDLOCK_ASCII, "a", 1));
    assert_true(derive(HF_DISTRIBUTEDLOCK_ASCII, "\x7f", 1) !=
                derive(HF_DISTRIBUTEDLOCK_ASCII, "", 0));
    assert_int_equal(hf_key_derive(HF_DISTRIBUTEDLOCK_HASH, "\x7f", 1, &key, &err), HF_INVALID);
    assert_string_equal(err.hint, "use distributedlock-ascii");
}

/* Printable ASCII, so that every derivation takes it. */
static unsigned char *long_label(void)
{
    unsigned char *label = malloc(HF_LABEL_MAX + 16);

    assert_non_null(label);
    for (size_t i = 0; i < HF_LABEL_MAX + 16; i++)
        label[i] = (unsigned char)('!' + i * 7 % 90);
    return label;
}

static void test_alignment_changes_nothing(void **state)
{
    unsigned char *label = long_label();

    (void)state;
    for (size_t size = 0; size < 64; size++) {
        for (int i = 0; i < COLUMN_COUNT; i++) {
            int64_t aligned = derive(columns[i], label, size);
            for (size_t shift = 1; shift < 8; shift++) {
                unsigned char *moved = malloc(size + shift + 1);
                assert_non_null(moved);
                memcpy(moved + shift, label, size);
                assert_true(derive(columns[i], moved + shift, size) == aligned);
                free(moved);
            }
        }
    }
    free(label);
}

static void test_every_byte_of_any_length_counts(void **state)
{
    static const size_t sizes[] = {1,  2,  3,  4,  5,  7,  8,    9,
                                   11, 12, 13, 23, 24, 25, 4095, HF_LABEL_MAX};
    unsigned char *label = long_label();

    (void)state;
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        size_t last = sizes[n] - 1;
        for (int i = 0; i < COLUMN_COUNT; i++) {
            int64_t key = derive(columns[i], label, sizes[n]);
            label[last] ^= 1;
            assert_true(derive(columns[i], label, sizes[n]) != key);
            label[last] ^= 1;
            assert_true(derive(columns[i], label, last) != key);
        }
    }
    free(label);
}

/* Around the ends of blocks; the values are those of Python's hashlib. */
static void test_sha256_pads_any_length(void **state)
{
    static const struct {
        size_t size;
        int64_t key;
    } known[] = {
        {1, INT64_C(-4939876235118543868)},    {55, INT64_C(7386675065864256808)},
        {56, INT64_C(-8641801649231059029)},   {63, INT64_C(-3323070847410850687)},
        {64, INT64_C(-2596260502867506510)},   {65, INT64_C(-5291912626497707188)},
        {119, INT64_C(-4156108730218215384)},  {120, INT64_C(705344486426015356)},
        {127, INT64_C(4453740075169786096)},   {128, INT64_C(3337745114172357116)},
        {65535, INT64_C(2882629335078178140)}, {65536, INT64_C(1359484022930251111)},
    };
    unsigned char *label = long_label();

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(derive(HF_SHA256, label, known[i].size) == known[i].key);
    free(label);
}

static void test_bytes_above_127_are_unsigned(void **state)
{
    (void)state;
    /* FNV-1a of the one byte 0xff, from the definition. */
    assert_true(derive(HF_FNV1A64, "\xff", 1) == (int64_t)UINT64_C(0xaf64724c8602eb6e));
    assert_true(derive(HF_FNV1A32, "\xff", 1) == (int32_t)UINT32_C(0x7a0b824e));
}

static void test_a_label_may_hold_nul(void **state)
{
    (void)state;
    for (int i = 0; i < COLUMN_COUNT; i++)
        assert_true(derive(columns[i], "a\0b", 3) != derive(columns[i], "a", 1));
}

static void test_an_empty_label_needs_no_pointer(void **state)
{
    (void)state;
    assert_true(derive(HF_SHA256, NULL, 0) == INT64_C(-2039914840885289964));
}

static void refuse(hf_derivation derivation, const void *label, size_t size, const char *message)
{
    hf_error err = {0};
    int64_t key = 77;

    assert_int_equal(hf_key_derive(derivation, label, size, &key, &err), HF_INVALID);
    assert_int_equal(err.code, HF_INVALID);
    assert_string_equal(err.message, message);
    assert_int_equal(key, 77);
    assert_int_equal(hf_key_derive(derivation, label, size, &key, NULL), HF_INVALID);
}

static void test_a_label_beyond_the_limit_is_refused(void **state)
{
    unsigned char *label = long_label();

    (void)state;
    for (int i = 0; i < COLUMN_COUNT; i++)
        refuse(columns[i], label, HF_LABEL_MAX + 1, "the label has 65537 bytes, more than 65536");
    free(label);
}

static void test_the_javascript_form_refuses_invalid_utf8(void **state)
{
    (void)state;
    refuse(HF_FNV1A32_JS, "ab\xff", 3, "the label is not valid UTF-8 at byte 3");
    refuse(HF_FNV1A32_JS, "\xed\xa0\x80", 3, "the label is not valid UTF-8 at byte 1");
    refuse(HF_FNV1A32_JS, "\xc0\xaf", 2, "the label is not valid UTF-8 at byte 1");
    refuse(HF_FNV1A32_JS, "x\xf0\x9f\x94", 4, "the label is not valid UTF-8 at byte 2");
}

static void test_a_fixed_key_is_the_number_itself(void **state)
{
    (void)state;
    assert_true(derive(HF_FIXED, "42", 2) == 42);
    assert_true(derive(HF_FIXED, "-9223372036854775808", 20) == INT64_MIN);
    assert_true(derive(HF_FIXED, "9223372036854775807xyz", 19) == INT64_MAX);
    refuse(HF_FIXED, "9223372036854775808", 19, "the key is out of range: '9223372036854775808'");
    refuse(HF_FIXED, "4x", 2, "the key is not a whole number: '4x'");
    refuse(HF_FIXED, "", 0, "the key is not a whole number: ''");
    refuse(HF_FIXED, "4\0", 2, "the key is not a 64-bit number: '4\\x00'");
}

static void test_keys_that_are_not_computed_are_refused(void **state)
{
    (void)state;
    refuse(HF_MINTED, "x", 1, "a minted key is not computed from a label");
    refuse((hf_derivation)99, "x", 1, "unknown derivation: 99");
}

static void test_derivations_have_names(void **state)
{
    hf_derivation parsed;
    hf_error err;

    (void)state;
    for (int i = HF_SHA256; i <= HF_DISTRIBUTEDLOCK_HASH; i++) {
        assert_int_equal(hf_derivation_parse(hf_derivation_name((hf_derivation)i), &parsed, NULL),
                         0);
        assert_int_equal(parsed, i);
    }
    assert_null(hf_derivation_name((hf_derivation)(HF_DISTRIBUTEDLOCK_HASH + 1)));
    assert_null(hf_derivation_name((hf_derivation)-1));
    assert_int_equal(hf_derivation_parse("md5\n", &parsed, &err), HF_INVALID);
    assert_string_equal(err.message, "unknown derivation: 'md5\\n'");
    assert_non_null(strstr(err.hint, "fnv1a32-js"));
    assert_int_equal(hf_derivation_parse("", &parsed, NULL), HF_INVALID);
    assert_int_equal(hf_derivation_parse("SHA256", &parsed, NULL), HF_INVALID);
}

static void test_the_halves_of_a_key_are_unsigned(void **state)
{
    static const struct {
        int64_t key;
        uint32_t classid, objid;
    } cases[] = {
        {0, 0, 0},
        {-1, UINT32_MAX, UINT32_MAX},
        {1, 0, 1},
        {INT64_MIN, 0x80000000, 0},
        {INT64_MAX, 0x7FFFFFFF, UINT32_MAX},
        {-2128831035, UINT32_MAX, 0x811c9dc5},
        {INT64_C(4294967296), 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t classid, objid;
        hf_key_split(cases[i].key, &classid, &objid);
        assert_int_equal(classid, cases[i].classid);
        assert_int_equal(objid, cases[i].objid);
        assert_true(hf_key_join(classid, objid) == cases[i].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_vectors_hold),
        cmocka_unit_test(test_the_keys_of_libraries_are_theirs),
        cmocka_unit_test(test_a_label_is_ascii_up_to_its_end_and_to_del),
        cmocka_unit_test(test_alignment_changes_nothing),
        cmocka_unit_test(test_every_byte_of_any_length_counts),
        cmocka_unit_test(test_sha256_pads_any_length),
        cmocka_unit_test(test_bytes_above_127_are_unsigned),
        cmocka_unit_test(test_a_label_may_hold_nul),
        cmocka_unit_test(test_an_empty_label_needs_no_pointer),
        cmocka_unit_test(test_a_label_beyond_the_limit_is_refused),
        cmocka_unit_test(test_the_javascript_form_refuses_invalid_utf8),
        cmocka_unit_test(test_a_fixed_key_is_the_number_itself),
        cmocka_unit_test(test_keys_that_are_not_computed_are_refused),
        cmocka_unit_test(test_derivations_have_names),
        cmocka_unit_test(test_the_halves_of_a_key_are_unsigned),
    };
    return RUN(tests);
}
