/* The launcher without a payload: a command server for an existing program (tests, a checkout).
 * gcc -DPROGRAM='"/path/to/coder"' -DKEY='"name of this version"' checkout_launcher.c command_client.c */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command_client.h"

int main(int argc, char **argv) {
    int wants_server = run_warm(KEY, argc, argv);
    if (wants_server) start_command_server(PROGRAM, execve);
    execv(PROGRAM, argv);
    perror("coder: cannot start " PROGRAM);
    return 127;
}
