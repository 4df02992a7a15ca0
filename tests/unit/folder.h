/* A folder of the test's own; make_folder and drop_folder are its set-up and its teardown. */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

extern char folder[64];

int make_folder(void **state);
int drop_folder(void **state);

/* The folder with all that is in it; what cannot be removed stays. */
void remove_tree(const char *path);

#endif
