/* The folder of unpacked programs; see cache.c. */
#ifndef CACHE_H
#define CACHE_H

/* The folder for programs of this user into out[PATH_SIZE]; `key` names the requested one. Exits without one. */
void choose_cache(char *out, const char *key);

/* Prevents the removal of the program until this process (also after exec) ends. 0 if it is incomplete. */
int hold_program(const char *cache, const char *key);

/* Removes leftovers of killed starts, and programs unused for a month. */
void tidy_cache(const char *cache, const char *key);

/* A new folder to unpack into, into folder[PATH_SIZE]. The descriptor marks it as in use. */
int make_folder(const char *cache, char *folder);

/* Renames an unpacked folder to its name, or removes it if another start was first. */
void put_in_place(const char *cache, const char *key, const char *folder);

#endif
