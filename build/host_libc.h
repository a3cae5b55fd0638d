/* Which C library runs the program; see host_libc.c. */
#ifndef HOST_LIBC_H
#define HOST_LIBC_H

/* As execve, for the unpacked program. Returns only when that fails, with errno set. */
int exec_program(const char *program, char *const argv[], char *const environment[]);

#endif
