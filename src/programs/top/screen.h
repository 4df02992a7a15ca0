/* The terminal, by ncursesw. A screen belongs to one thread. */
#ifndef HF_TOP_SCREEN_H
#define HF_TOP_SCREEN_H

#include "holdfast/holdfast.h"
#include "programs/top/frame.h"

typedef struct hf__screen hf__screen;

/* HF_INVALID: there is no terminal, or it is unknown or cannot move its cursor. Changes nothing. */
HF_MUST_CHECK hf_status hf__screen_check(hf_error *err);

/* Call it after the check. The terminal is changed until hf__screen_close. */
HF_MUST_CHECK hf_status hf__screen_open(bool colour, hf__screen **screen, hf_error *err);
void hf__screen_close(hf__screen *screen); /* NULL is safe */

void hf__screen_size(const hf__screen *screen, size_t *width, size_t *height);

/* Sends what has changed since the last frame. */
void hf__screen_show(hf__screen *screen, const hf__frame *frame);
void hf__screen_forget(hf__screen *screen); /* the next frame is sent whole */

/* The next key, as top.h has them; false when there is none. Does not wait. */
bool hf__screen_key(hf__screen *screen, int32_t *key);

void hf__screen_resized(hf__screen *screen);
void hf__screen_suspend(hf__screen *screen); /* restores the terminal */
void hf__screen_resume(hf__screen *screen);

/* Copies the text to the terminal's clipboard with OSC 52. False: this terminal has none. */
bool hf__screen_copy(hf__screen *screen, const char *text);

#endif
