"""Recent output of a terminal, for a viewer that attaches: without the programs' questions, from a whole character on.

A terminal program asks its terminal for the cursor's position, colours or features (vim, tmux, fzf, prompt themes). A
viewer that reads the question again answers again, and the answer appears as typed text at the prompt.
"""

from __future__ import annotations

import re

_STRING = rb"[^\x07\x1b\x9c]{0,256}(?:\x07|\x1b\\)"
"Rest of a control string: its text and its terminator."
_QUESTION = re.compile(
    rb"\x1b\[\??[56]n"  # DSR: status, position
    rb"|\x1b\[\?(?:15|25|26|53|55|56|62|63|75|85|996)[;\d]*n"  # DSR of DEC, colour scheme
    rb"|\x1b\[[>=?]?0?c"  # DA1 to DA3
    rb"|\x1b\[>0?q"  # XTVERSION
    rb"|\x1b\[\??\d+\$p"  # DECRQM
    rb"|\x1b\[(?:1[1345689]|2[01])(?:;\d+)*t"  # XTWINOPS reports
    rb"|\x1b\[\?u"  # keyboard protocol
    rb"|\x1b\[\?[\d;]*S"  # XTSMGRAPHICS
    rb"|\x1b\[x|\x1b\[[01]x"  # DECREQTPARM
    rb"|\x1b\[\d*\*y"  # DECRQCRA
    rb"|\x1bZ|\x05"  # DECID, ENQ
    rb"|\x1b\](?:4;\d+|5;\d+|1[0-9]|52;[a-z0-9]*|133|66)(?:;\d+;\?)*;\?(?:\x07|\x1b\\)"  # OSC: colours, clipboard
    rb"|\x1bP(?:\+q|\$q)"
    + _STRING  # XTGETTCAP, DECRQSS
    + rb"|\x1b_G"
    + _STRING  # graphics protocol, which also answers
)
_CONTINUATION = re.compile(rb"[\x80-\xbf]{0,3}")
_LINE_SEARCH = 4096
"Bytes at the beginning of a cut replay in which a line's end is looked for (ours)."


def replay_of(output: bytes, size: int) -> bytes:
    """Return at most the last `size` bytes of a terminal's output, as a viewer may read them again.

    A cut replay begins with a line, or at least with a character: the rest of a control sequence would be text.
    """
    kept = output[-size:]
    if len(output) > size:
        end = kept.find(b"\n", 0, _LINE_SEARCH)
        rest = _CONTINUATION.match(kept)
        kept = kept[end + 1 :] if end >= 0 else kept[rest.end() if rest else 0 :]
    return _QUESTION.sub(b"", kept)
