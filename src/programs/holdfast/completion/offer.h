#ifndef HF_HOLDFAST_OFFER_H
#define HF_HOLDFAST_OFFER_H

/*
 * Prints what a shell may offer for the last of the words, of which `count` follow "holdfast": one
 * word per line, or the line ":files" or ":commands" for what the shell itself knows best. Prints
 * nothing where there is no rule, and what the registry has where the store does not answer. words
 * may have one entry more, which is not read. Ends the process after two seconds.
 */
void print_offers(char *const *words, int count);

#endif
