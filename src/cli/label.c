#include "cli/label.h"

#include <string.h>

#include "base/text.h"
#include "cli/load.h"
#include "cli/report.h"

static const char *find_control(const char *label)
{
    for (; *label != '\0'; label++)
        if ((unsigned char)*label < 0x20 || *label == 0x7f)
            return label;
    return NULL;
}

static hf_status refuse_empty(const char *label, hf_error *err)
{
    hf_status status = HF_OK;

    if (label[0] == '\0') {
        status = hf__fail(err, HF_INVALID, "the label is empty");
        hf__hint(err, "give the lock a name, such as nightly-report");
    }
    return status;
}

hf_status check_label(const char *label, hf_error *err)
{
    char shown[SHOWN_MAX];
    hf_status status = refuse_empty(label, err);

    if (status == HF_OK && find_control(label) != NULL) {
        status = hf__fail(err, HF_INVALID, "the label has a control character: '%s'",
                          hf__show(shown, sizeof shown, label, strlen(label)));
        hf__hint(err, "labels are printable text; a newline may come from a file or a variable");
    }
    return status;
}

hf_status target_label(const char *label, const char *derivation, hf_target *target, hf_error *err)
{
    hf_status status = refuse_empty(label, err);

    *target = (hf_target){.label = label};
    if (status == HF_OK && derivation != NULL)
        status = hf_derivation_parse(derivation, &target->derivation, err);
    if (status == HF_OK)
        status = load_libcrypto(err);
    if (status == HF_OK)
        status = hf_key_derive(target->derivation, label, strlen(label), &target->key, err);
    return status;
}
