"""Errors for questions without an answer: standard input ended, so a script or a nightly job runs the command.

The original prints `EOF`. The message names the question and what answers it in a script.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from coder.base.errors import CoderError

ANSWERS = {
    "Username:": "--username",
    "Email:": "--email",
    "Password:": "--password",
    "Name of the proxy:": "--name",
    "What username would you like?": "--first-user-username",
    "What's your email?": "--first-user-email",
    "Enter a password:": "--first-user-password",
    "Paste your token here:": "--token",
    "Enter true or false:": "--parameter NAME=VALUE",
    "Enter a value:": "--parameter NAME=VALUE",
    "Enter values, separated by commas:": "--parameter NAME=VALUE",
    "Specify a name for your workspace:": "the workspace's name as an argument",
    "Which template?": "the template's name as an argument",
    "Which version?": "the version's name as an argument",
    "Which versions of {}?": "the versions' names as arguments",
    "Select a preset:": "--preset NAME, or --preset none",
    "Choose a template:": "--id",
    "Choose a base:": "--base ID",
    "Choose modules:": "--module ID",
    "Select a template:": "--template",
    "Roles:": "--roles",
    'Type "{}" to confirm rename:': "the workspace's name on standard input",
    "Which templates?": "the templates' names as arguments",
    "{} ({}):": "--variable NAME=VALUE",
    "Value of the secret:": "--value, or write the value to standard input",
}
"""Questions and the flag or argument that answers them. `{}` stands for a name or a description."""
_OTHERS = "write the answer to its standard input, or run the command at a terminal"


def unanswered(question: str, answer: str = "") -> CoderError:
    """Return the error for a question at the end of standard input; `answer`: flag or argument that answers it."""
    known = answer or next((text for asked, text in ANSWERS.items() if _is(asked, question)), "")
    way = f"answer it with {known}" if known else _OTHERS
    return CoderError("eof", f'no answer to "{question}" on standard input: {way}')


def _is(asked: str, question: str) -> bool:
    return question == asked or ("{}" in asked and fnmatchcase(question, asked.replace("{}", "?*")))
