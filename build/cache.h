/* The folder of unpacked programs; see cache.c. */
#ifndef CACHE_H
#define CACHE_H

/* The folder for programs of this user into out[PATH_SIZE]; `key` names the one that is wanted. Ends when there is none. */
void choose_cache(char *out, const char *key);

/* Keeps the program from being removed until this process and what it becomes end. 0 when it is not whole. */
int hold_program(const char *cache, const char *key);

/* Removes what killed starts left behind, and programs unused for a month. */
void tidy_cache(const char *cache, const char *key);

/* A new folder to unpack into, into folder[PATH_SIZE]. The descriptor keeps others from taking it for left behind. */
int make_folder(const char *cache, char *folder);

/* Gives an unpacked folder its name, unless another start was first: then it is removed. */
void put_in_place(const char *cache, const char *key, const char *folder);

#endif
