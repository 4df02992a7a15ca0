#include "folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char folder[64];

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found, (void)kind, (void)at;
    return remove(path);
}

void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/hf-test-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

int drop_folder(void **state)
{
    (void)state;
    (void)chmod(folder, 0700); /* a test may have taken the right away */
    remove_tree(folder);
    return 0;
}
