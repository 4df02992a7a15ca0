/* For programs that run for long: they are linked with their libraries, and load nothing here. */
#include "cli/load.h"

hf_status load_libpq(hf_error *err)
{
    (void)err;
    return HF_OK;
}

hf_status load_sqlite(hf_error *err)
{
    (void)err;
    return HF_OK;
}

hf_status load_libcrypto(hf_error *err)
{
    (void)err;
    return HF_OK;
}

hf_status load_libyaml(hf_error *err)
{
    (void)err;
    return HF_OK;
}
