"""Definition of the agent's scheduled task on Windows (Task Scheduler schema 1.2, [MS-TSCH] 2.5).

A task that runs "whether the user is logged on or not" without a stored password (S4U) starts with the machine and
survives logoffs. A service would have to answer the service control manager, and would run in another user's account.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from xml.sax.saxutils import escape

ENCODING = "utf-16"
"""schtasks rejects a definition whose declared encoding is not that of the file; its own exports are UTF-16."""
_REPEAT = (
    "<Repetition><Interval>PT1M</Interval><StopAtDurationEnd>false</StopAtDurationEnd></Repetition>"
    "<Enabled>true</Enabled>"
)
"The scheduler starts an agent that has ended again within a minute, and ignores the trigger while one runs."


_DESCRIPTION = "Coder agent. Written by `coder agent install`; `coder agent uninstall` removes it."
_SETTINGS = (
    "<MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>"
    "<DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>"
    "<StopIfGoingOnBatteries>false</StopIfGoingOnBatteries><AllowHardTerminate>true</AllowHardTerminate>"
    "<StartWhenAvailable>true</StartWhenAvailable><Hidden>true</Hidden>"
    "<ExecutionTimeLimit>PT0S</ExecutionTimeLimit><Priority>5</Priority>"
)


def task_definition(name: str, user: str, argv: Sequence[str]) -> str:
    """Return the definition as XML: the agent runs as `user`, at normal priority, without a time limit."""
    arguments = subprocess.list2cmdline(argv[1:])
    return (
        '<?xml version="1.0" encoding="UTF-16"?>\r\n'
        '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">\r\n'
        f"  <RegistrationInfo><Description>{_DESCRIPTION}</Description>"
        f"<URI>\\{escape(name)}</URI></RegistrationInfo>\r\n"
        f"  <Triggers><BootTrigger>{_REPEAT}</BootTrigger>"
        f"<RegistrationTrigger>{_REPEAT}</RegistrationTrigger></Triggers>\r\n"
        f'  <Principals><Principal id="Author"><UserId>{escape(user)}</UserId><LogonType>S4U</LogonType>'
        "<RunLevel>LeastPrivilege</RunLevel></Principal></Principals>\r\n"
        f"  <Settings>{_SETTINGS}</Settings>\r\n"
        f'  <Actions Context="Author"><Exec><Command>{escape(argv[0])}</Command>'
        f"<Arguments>{escape(arguments)}</Arguments></Exec></Actions>\r\n"
        "</Task>\r\n"
    )


def create_command(name: str, definition: str) -> tuple[str, ...]:
    """Return the command that registers a task, replacing one of that name; its registration starts it."""
    return ("schtasks", "/Create", "/TN", name, "/XML", definition, "/F")


def end_command(name: str) -> tuple[str, ...]:
    """Return the command that ends the task's process, whose children end with it (job object)."""
    return ("schtasks", "/End", "/TN", name)


def delete_command(name: str) -> tuple[str, ...]:
    return ("schtasks", "/Delete", "/TN", name, "/F")


def query_command(name: str) -> tuple[str, ...]:
    """Return the command that shows the task's state and the result of its last run."""
    return ("schtasks", "/Query", "/TN", name, "/V", "/FO", "LIST")
