#include "holdfast/holdfast.h"

const char *hf_version(void)
{
    return HF_VERSION;
}

const char *hf_status_name(hf_status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case HF_##name: return "HF_" #name;
        HF_STATUS_MAP(X)
#undef X
    }
    return "HF_UNKNOWN";
}

const char *hf_status_text(hf_status status)
{
    switch (status) {
#define X(name, number, text)                                                                      \
    case HF_##name: return text;
        HF_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}
