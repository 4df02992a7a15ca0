/* For programs that run long enough to have their libraries from the start. */
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
