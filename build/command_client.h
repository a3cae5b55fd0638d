/* The launcher's side of the command server; see command_client.c and docs/decisions/command-server.md. */
#ifndef COMMAND_CLIENT_H
#define COMMAND_CLIENT_H

/* Lets a warm process run this command and exits with its status. Returns if the command must run cold: 1 if a
 * server is to be started for later commands, 0 if this command is never served. */
int run_warm(const char *key, int argc, char **argv);

/* Forks a process that starts `program` as the server, after this command has ended or has run for a while. */
typedef int program_starter(const char *program, char *const argv[], char *const environment[]); /* as execve */
void start_command_server(const char *program, program_starter *start);

#endif
