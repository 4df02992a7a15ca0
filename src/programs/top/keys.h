/* Keys as the terminal's driver hands them on: characters are themselves. */
#ifndef HF_TOP_KEYS_H
#define HF_TOP_KEYS_H

enum {
    HF__KEY_UP = 0x110000,
    HF__KEY_DOWN,
    HF__KEY_LEFT,
    HF__KEY_RIGHT,
    HF__KEY_PAGE_UP,
    HF__KEY_PAGE_DOWN,
    HF__KEY_HOME,
    HF__KEY_END,
    HF__KEY_TAB,
    HF__KEY_BACK_TAB,
    HF__KEY_ENTER,
    HF__KEY_ESCAPE,
    HF__KEY_BACKSPACE,
};

#endif
