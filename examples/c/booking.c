/* Books a room, one booking per tenant and date at a time: booking TENANT DATE ROOM */
#include <holdfast/holdfast.h>

#include <stdio.h>

static hf_status book(hf_tx *tx, char **argv, hf_error *err)
{
    const hf_value values[] = {HF_TEXT(argv[1]), HF_TEXT(argv[2]), HF_TEXT(argv[3])};
    hf_rows *rows = NULL;
    hf_status status =
        hf_tx_query(tx, "SELECT 1 FROM booking WHERE tenant = $1 AND day = $2 AND room = $3", 3,
                    values, false, &rows, err);
    if (status != HF_OK)
        return status;
    bool is_taken = hf_rows_count(rows) > 0;
    hf_rows_free(rows);
    if (is_taken)
        return HF_ROLLED_BACK;
    return hf_tx_queue(tx, "INSERT INTO booking (tenant, day, room) VALUES ($1, $2, $3)", 3, values,
                       err);
}

int main(int argc, char **argv)
{
    hf_store_options options = HF_STORE_OPTIONS_INIT;
    hf_tx_options how = HF_TX_OPTIONS_INIT;
    hf_store *store = NULL;
    hf_tx *tx = NULL;
    hf_error err;
    char label[200];
    if (argc != 4)
        return 64;
    snprintf(label, sizeof label, "Booking:%s:%s", argv[1], argv[2]);
    const hf_target target = HF_LABEL(label);
    how.labels = &target;
    how.label_count = 1;
    options.environment = true;
    hf_status status = hf_store_open(&options, &store, &err);
    if (status == HF_OK)
        status = hf_tx_begin(store, &how, &tx, &err);
    if (status == HF_OK) /* the loop is ours: no callback */
        do
            status = hf_tx_end(tx, book(tx, argv, &err), &err);
        while (status == HF_AGAIN);
    hf_tx_free(tx);
    hf_store_close(store);
    if (status == HF_ROLLED_BACK)
        printf("taken\n");
    else if (status != HF_OK)
        fprintf(stderr, "%s\n", err.message);
    return status == HF_OK ? 0 : 1;
}
