"""Payloads of NOTIFY that no process of ours sends, for every channel: any program with the database's password can.

`{user}`, `{workspace}`, `{agent}` and `{organization}` are ids that exist, `{none}` is one that does not.
"""

from __future__ import annotations

import json
from typing import Any

_DEEP = 3900
_PAIR = "{user} {workspace}"
PAYLOADS: dict[str, str] = {
    "nothing": "",
    "a space": " ",
    "spaces": " " * 7000,
    "a line end": "\n",
    "words": "hello world",
    "four words": "a b c d",
    "the largest": "x" * 7999,
    "a byte order mark": "\ufeff{user}",
    "directions": "\u202e{user}",
    "an escape": "\x1b[2J{user}",
    "a separator": "\u2028",
    "letters of four bytes": "😀" * 1999,
    "marks": "e" + "\u0301" * 3000,
    "an id": "{user}",
    "an id in capitals": "{USER}",
    "an id in braces": "{{{user}}}",
    "an id as URN": "urn:uuid:{user}",
    "an id without hyphens": "{user}".replace("-", ""),
    "half an id": "{user}"[:5],
    "an unknown id": "{none}",
    "two ids": _PAIR,
    "a user and no id": "{user} x",
    "a user and a number": "{user} 7",
    "a user and an unknown id": "{user} {none}",
    "a user and nothing": "{user} ",
    "a user and two spaces": "{user}  {none}",
    "a user and a deep list": "{user} " + "[" * _DEEP,
    "a change": "update {user} {workspace} {agent}",
    "a change without an agent": "update {user} {workspace} ",
    "a change of three words": "update {user} {workspace}",
    "a change of five words": "update {user} {workspace} {agent} x",
    "a change of an unknown kind": "dance {user} {workspace} {agent}",
    "a change of nothing": "update   ",
    "a change of words": "update a b c",
    "a change with a wrong agent": "update {user} {workspace} x",
    "a key": "key x",
    "a key of another kind": "KEY x",
    "a user's end": "user {none}",
    "an end of nothing": "user ",
    "an end of everything": "user *",
    "a resync": "resync",
    "a resync with a NUL's name": "\\x00resync",
    "null": "null",
    "true": "true",
    "a number": "7",
    "a long number": "9" * 7000,
    "NaN": "NaN",
    "infinity": "1e999999",
    "a text": '"x"',
    "a list": "[]",
    "a deep list": "[" * _DEEP,
    "a deep list that ends": "[" * _DEEP + "]" * _DEEP,
    "a deep object": '{"a":' * 1300 + "1" + "}" * 1300,
    "an object": "{}",
    "an unfinished object": "{",
    "an object twice": "{}{}",
    "half a pair": '{"a":"\\ud800"}',
}
_JOB = {"organization_id": "{organization}", "type": "echo", "tags": {"scope": "organization", "owner": ""}}
_WRONG: tuple[Any, ...] = (
    None,
    1,
    -1,
    1.5,
    True,
    "",
    "x",
    [],
    ["x"],
    [["a", "b"]],
    [[[], "b"]],
    {},
    {"a": {"b": "c"}},
    "x" * 3000,
)
JOBS: dict[str, str] = {
    f"job with {field} {json.dumps(value)[:30]}": json.dumps({**_JOB, field: value})
    for field in _JOB
    for value in _WRONG
}
_MESSAGE = {"sender": "{none}", "number": 1, "word": "tunnel", "peer": "{agent}", "other": "{none}", "node": ""}
_WORDS = ("here", "tunnel", "update", "left", "revoked", "up", "again", "whole", "bye", "dance", "")
MESSAGES: dict[str, str] = {
    f"message with {field} {json.dumps(value)[:30]}": json.dumps({**_MESSAGE, field: value})
    for field in _MESSAGE
    for value in (*_WRONG, 1 << 70, "=", "AAAA", "////")
}
MESSAGES |= {f"message {word} of nobody": json.dumps({**_MESSAGE, "word": word}) for word in _WORDS}
MESSAGES |= {
    f"message {word} without a peer": json.dumps({"sender": "{none}", "number": 2, "word": word}) for word in _WORDS
}
MESSAGES |= {
    f"update of kind {kind}": json.dumps({**_MESSAGE, "word": "update", "kind": kind})
    for kind in (-1, 0, 1, 2, 3, 4, 5, 99, 1 << 31, 1 << 63)
}
MESSAGES |= {
    "a deep field of a message": json.dumps(_MESSAGE)[:-1] + ',"x":' + "[" * 3500 + "}",
    "a node in a row that is absent": json.dumps({**_MESSAGE, "is_in_row": True}),
    "a message to another": json.dumps({**_MESSAGE, "to": "{none}"}),
    "a message to a text": json.dumps({**_MESSAGE, "to": "x"}),
    "a message of a peer to itself": json.dumps({**_MESSAGE, "other": "{agent}"}),
}
