/* The terminal, on ncursesw. One thread. */
#ifndef HF_TOP_SCREEN_H
#define HF_TOP_SCREEN_H

#include "holdfast/holdfast.h"
#include "programs/top/frame.h"

typedef struct hf__screen hf__screen;

/* HF_INVALID: there is no terminal, or none that is known and can move its cursor. Touches nothing. */
HF_MUST_CHECK hf_status hf__screen_check(hf_error *err);

/* After the check. From here on until it is closed the terminal is not as it was. */
HF_MUST_CHECK hf_status hf__screen_open(bool colour, hf__screen **screen, hf_error *err);
void hf__screen_close(hf__screen *screen); /* NULL is safe */

void hf__screen_size(const hf__screen *screen, size_t *width, size_t *height);

/* Sends what has changed since the last frame. */
void hf__screen_show(hf__screen *screen, const hf__frame *frame);
void hf__screen_forget(hf__screen *screen); /* the next frame is sent whole */

/* The next key that is there (see keys.h); false: none. */
bool hf__screen_key(hf__screen *screen, int32_t *key);

void hf__screen_resized(hf__screen *screen);
void hf__screen_suspend(hf__screen *screen); /* gives the terminal back as it was */
void hf__screen_resume(hf__screen *screen);

/* To the clipboard of the terminal, by OSC 52. False: it is known not to have one. */
bool hf__screen_copy(hf__screen *screen, const char *text);

#endif
