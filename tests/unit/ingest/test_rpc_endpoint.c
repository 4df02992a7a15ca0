#include "unit.h"

#include <string.h>

#include "programs/ingest/sources/rpc.h"

static hf_status parse(const char *spec, const char *network, hf__rpc_endpoint *endpoint)
{
    hf_error err = {0};

    return hf__rpc_endpoint_parse(spec, network, endpoint, &err);
}

static void test_user_and_password_leave_the_url_and_the_name(void **state)
{
    hf__rpc_endpoint endpoint;

    (void)state;
    assert_int_equal(parse("rpc+https://ada:p%40ss@rpc.example:8443/v1?key=k", "pubnet", &endpoint),
                     HF_OK);
    assert_string_equal(endpoint.url, "https://rpc.example:8443/v1?key=k");
    assert_string_equal(endpoint.user, "ada");
    assert_string_equal(endpoint.password, "p@ss");
    assert_string_equal(endpoint.name, "rpc+https://rpc.example:8443/…");
    hf__rpc_endpoint_free(&endpoint);
}

static void test_defaults_are_those_of_a_public_network(void **state)
{
    hf__rpc_endpoint endpoint;

    (void)state;
    assert_int_equal(parse("rpc+http://localhost:8000", "testnet", &endpoint), HF_OK);
    assert_string_equal(endpoint.name, "rpc+http://localhost:8000");
    assert_string_equal(endpoint.passphrase, "Test SDF Network ; September 2015");
    assert_null(endpoint.user);
    assert_null(endpoint.ca_file);
    assert_int_equal(endpoint.poll_ms, 2000);
    assert_int_equal(endpoint.timeout_ms, 30000);
    hf__rpc_endpoint_free(&endpoint);
}

static void test_options_behind_the_hash_are_decoded_and_not_sent(void **state)
{
    hf__rpc_endpoint endpoint;

    (void)state;
    assert_int_equal(
        parse("rpc+http://h/rpc#passphrase=A%20%26%20B%20%23&poll=250ms&timeout=5s&ca=/x/y",
              "local", &endpoint),
        HF_OK);
    assert_string_equal(endpoint.url, "http://h/rpc");
    assert_string_equal(endpoint.passphrase, "A & B #");
    assert_string_equal(endpoint.ca_file, "/x/y");
    assert_int_equal(endpoint.poll_ms, 250);
    assert_int_equal(endpoint.timeout_ms, 5000);
    hf__rpc_endpoint_free(&endpoint);
}

static void test_a_known_network_takes_no_other_passphrase(void **state)
{
    hf__rpc_endpoint endpoint;
    hf_error err = {0};

    (void)state;
    assert_int_equal(
        hf__rpc_endpoint_parse("rpc+http://h/#passphrase=mine", "testnet", &endpoint, &err),
        HF_CONFIG);
    assert_non_null(strstr(err.message, "\"mine\""));
    assert_int_equal(parse("rpc+http://h/#passphrase=Test%20SDF%20Network%20;%20September%202015",
                           "testnet", &endpoint),
                     HF_OK);
    hf__rpc_endpoint_free(&endpoint);
}

static void test_a_refusal_never_tells_the_password(void **state)
{
    static const char *const specs[] = {
        "rpc+http://ada:secret@",     "rpc+gopher://ada:secret@h",
        "rpc+http://ada:secret@h:0x", "rpc+http://ada:secret@h/#speed=secret",
        "rpc+http://ada:secret@h a/",
    };
    hf__rpc_endpoint endpoint;

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        hf_error err = {0};
        assert_int_equal(hf__rpc_endpoint_parse(specs[i], "testnet", &endpoint, &err), HF_CONFIG);
        assert_null(strstr(err.message, "secret"));
        assert_null(strstr(err.hint, "secret"));
    }
}

static void test_redirects_stay_on_the_host_and_never_lose_tls(void **state)
{
    (void)state;
    assert_true(hf__rpc_may_redirect("http://h/", "http://h/v1"));
    assert_true(hf__rpc_may_redirect("http://h/", "http://H:80/v1"));
    assert_true(hf__rpc_may_redirect("http://h:8000/", "https://h/"));
    assert_true(hf__rpc_may_redirect("https://h/", "https://h:443/v1"));
    assert_false(hf__rpc_may_redirect("https://h/", "http://h/"));
    assert_false(hf__rpc_may_redirect("https://h/", "https://h:8443/"));
    assert_false(hf__rpc_may_redirect("http://h/", "http://other/"));
    assert_false(hf__rpc_may_redirect("http://h/", "http://h@other/"));
    assert_false(hf__rpc_may_redirect("http://h/", "ftp://h/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_and_password_leave_the_url_and_the_name),
        cmocka_unit_test(test_defaults_are_those_of_a_public_network),
        cmocka_unit_test(test_options_behind_the_hash_are_decoded_and_not_sent),
        cmocka_unit_test(test_a_known_network_takes_no_other_passphrase),
        cmocka_unit_test(test_a_refusal_never_tells_the_password),
        cmocka_unit_test(test_redirects_stay_on_the_host_and_never_lose_tls),
    };

    return RUN(tests);
}
