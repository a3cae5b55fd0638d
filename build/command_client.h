/* The launcher's side of the command server; see command_client.c and docs/decisions/command-server.md. */
#ifndef COMMAND_CLIENT_H
#define COMMAND_CLIENT_H

/* Has a warm process run this command and ends with its status. Returns when the command is to run cold: 1 when a
 * server is to be started for the commands to come, 0 when this one is none of its business. */
int run_warm(const char *key, int argc, char **argv);

/* Leaves a process behind that starts `program` as the server, once this command has ended or is well under way. */
typedef int program_starter(const char *program, char *const argv[], char *const environment[]); /* as execve */
void start_command_server(const char *program, program_starter *start);

#endif
