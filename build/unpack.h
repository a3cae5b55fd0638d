/* Unpacking the payload; see unpack.c. */
#ifndef UNPACK_H
#define UNPACK_H

#include <sys/types.h>

#define PATH_SIZE 4096

/* A folder that fail() and damaged() remove, or NULL. */
extern const char *half_made;

/* Prints one line and exits. */
void fail(const char *what, const char *path) __attribute__((noreturn));
void damaged(const char *file_name) __attribute__((noreturn));

/* left/right into out[PATH_SIZE]. */
void join(char *out, const char *left, const char *right);
int make_directories(const char *path, mode_t mode);
void remove_tree(const char *path);

/* Exits unless file[offset, end) matches the key. */
void verify(int file, off_t offset, off_t end, const char *key, const char *file_name);

/* Unpacks file[offset, end) into the directory. */
void unpack(int file, off_t offset, off_t end, const char *into, const char *file_name);

#endif
