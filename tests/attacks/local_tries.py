"""What an unprivileged user of the server's machine tries: files, sockets, /proc, signals, temporary folders.

Each try is an expression of Python, evaluated by a process of another user; it succeeds when it returns, and each is
expected to fail.
"""

from __future__ import annotations

PROCESS = {
    "environment": "open(f'/proc/{pid}/environ').read(1)",
    "memory": "open(f'/proc/{pid}/mem', 'rb').read(1)",
    "map of the memory": "open(f'/proc/{pid}/maps').read(1)",
    "system calls": "open(f'/proc/{pid}/syscall').read()",
    "kernel stack": "open(f'/proc/{pid}/stack').read()",
    "counters of input and output": "open(f'/proc/{pid}/io').read()",
    "list of descriptors": "os.listdir(f'/proc/{pid}/fd')",
    "a descriptor": "os.open(f'/proc/{pid}/fd/3', os.O_RDWR)",
    "standard error": "open(f'/proc/{pid}/fd/2', 'ab').write(b'x')",
    "working folder": "os.listdir(f'/proc/{pid}/cwd')",
    "root folder": "os.listdir(f'/proc/{pid}/root')",
    "program": "os.readlink(f'/proc/{pid}/exe')",
    "mapped files": "os.listdir(f'/proc/{pid}/map_files')",
    "name": "open(f'/proc/{pid}/comm', 'w').write('x')",
    "score of the killer": "open(f'/proc/{pid}/oom_score_adj', 'w').write('1000')",
    "filter of core dumps": "open(f'/proc/{pid}/coredump_filter', 'w').write('ff')",
    "accounting reset": "open(f'/proc/{pid}/clear_refs', 'w').write('1')",
    "kinds of pages": "open(f'/proc/{pid}/pagemap', 'rb').read(8)",
    "namespace": "os.setns(os.open(f'/proc/{pid}/ns/net', 0)) if hasattr(os, 'setns') else open(f'/proc/{pid}/ns/net')",
    "personality": "open(f'/proc/{pid}/personality').read()",
    "timers": "open(f'/proc/{pid}/timers').read() and 1/0",
    "a traced process": "check(libc.ptrace(16, pid, 0, 0))",
    "a seized process": "check(libc.ptrace(0x4206, pid, 0, 0))",
    "memory by call": "check(vm_read(pid))",
    "a descriptor by call": "check(libc.syscall(438, os.pidfd_open(pid), 3, 0))",
    "limits": "resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))",
    "priority": "os.setpriority(os.PRIO_PROCESS, pid, 19)",
    "processors": "os.sched_setaffinity(pid, {0})",
    "scheduler": "os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))",
    "priority of input and output": "check(libc.syscall(251, 1, pid, 3 << 13))",
    "kcmp of descriptors": "check(libc.syscall(312, pid, pid, 0, 1, 2))",
    "pages to another node": "check(libc.syscall(256, pid, 0, 0, 0))",
    **{
        f"signal {name}": f"os.kill(pid, signal.{name})"
        for name in (
            "SIGHUP",
            "SIGINT",
            "SIGTERM",
            "SIGKILL",
            "SIGSTOP",
            "SIGCONT",
            "SIGUSR1",
            "SIGUSR2",
            "SIGCHLD",
            "SIGQUIT",
            "SIGABRT",
            "SIGSEGV",
            "SIGPIPE",
            "SIGALRM",
            "SIGIO",
            "SIGWINCH",
            "SIGXCPU",
            "SIGTSTP",
            "SIGTRAP",
            "SIGURG",
        )
    },
    "signal by a descriptor": "signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM)",
    "signal with a value": "check(libc.sigqueue(pid, 1, 0))",
    "signal to a thread": "check(libc.syscall(234, pid, pid, 15))",
    "signal to the group": "os.killpg(os.getpgid(pid), signal.SIGTERM)",
}
"""For each process: the supervisor, api, loops, sandbox, keeper, PostgreSQL."""

FOLDERS = {
    "list": "os.listdir(path)",
    "enter": "os.chdir(path)",
    "a new file": "open(path + '/x', 'w')",
    "a new folder": "os.mkdir(path + '/x')",
    "a link in it": "os.symlink('/etc/passwd', path + '/x')",
    "a socket in it": "socket.socket(socket.AF_UNIX).bind(path + '/x.sock')",
    "another name": "os.rename(path, path + '.x')",
    "removal": "shutil.rmtree(path)",
    "its mode": "os.chmod(path, 0o777)",
    "its owner": "os.chown(path, os.getuid(), -1)",
    "its times": "os.utime(path)",
    "an attribute": "os.setxattr(path, 'user.x', b'y')",
    "a watch": "check(libc.inotify_add_watch(libc.inotify_init(), path.encode(), 0x300))",
}
"""For each private folder: sockets of the processes, cluster, sockets of PostgreSQL, settings, sandbox files."""

FILES = {
    "read": "open(path, 'rb').read(1)",
    "append": "open(path, 'ab')",
    "truncate": "os.truncate(path, 0)",
    "remove": "os.unlink(path)",
    "replace": "os.replace('/tmp/nothing', path)",
    "a hard link": "os.link(path, temporary + '/link')",
    "a lock": "fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "its mode": "os.chmod(path, 0o666)",
    "through a link": "(os.symlink(path, temporary + f'/l{os.getpid()}'), open(temporary + f'/l{os.getpid()}', 'rb').read(1))",
    "a mapping": "mmap.mmap(os.open(path, os.O_RDWR), 1)",
}
"""For each private file: log, lock and settings of PostgreSQL, postmaster.pid, pg_hba.conf, tables, session files."""

SOCKETS = {
    "nothing": "(connect(path), None)[0].send(b'')",
    "a start": r"connect(path).sendall(b'\0\0\0\x08\x04\xd2\x16\x2f')",
    "foreign bytes": "connect(path).sendall(bytes(range(256)))",
    "a message": r"connect(path).sendall(b'\0\0\0\x15\0\0\0\0' + b'{\"kind\":\"connection\"}')",
    "a descriptor": r"socket.send_fds(connect(path), [b'\0\0\0\x15\0\0\0\0'], [0])",
    "a datagram": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', path)",
    "its removal": "os.unlink(path)",
    "another in its place": "socket.socket(socket.AF_UNIX).bind(path)",
    "its mode": "os.chmod(path, 0o666)",
}
"""For each socket: of every process, of PostgreSQL."""
