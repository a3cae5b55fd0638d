"""Screen of the list: keys, drawing and cursor, with prompt_toolkit. `chooser` has the state of the list."""

from __future__ import annotations

import os
import sys

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.output import Output
from prompt_toolkit.output.color_depth import ColorDepth

from coder.cli.ui.chooser import ROWS, Chooser
from coder.cli.ui.colour import is_coloured


def run_chooser(question: str, chooser: Chooser) -> list[str]:
    """Draw the list, handle keys, and leave one line with the answer. Raise KeyboardInterrupt at Ctrl-C."""
    moves = (
        "space to select"
        if chooser.many
        else "arrows to move, type to search"
        if chooser.searches
        else "arrows to move"
    )
    help_line = f"{moves}, Enter to confirm"

    def text() -> StyleAndTextTuples:
        parts: StyleAndTextTuples = [("bold", question), ("", f" {chooser.typed}" if chooser.typed else "")]
        parts.append(("italic", f"  ({help_line})"))
        for style, line in chooser.lines():
            parts += [("", "\n"), (style, line)]
        return parts

    control = FormattedTextControl(text, focusable=True, show_cursor=False)
    application: Application[list[str]] = Application(
        layout=Layout(Window(control, dont_extend_height=True)),
        key_bindings=_keys(chooser),
        erase_when_done=True,
        output=_output(),
    )
    values = application.run()
    sys.stdout.write(f"> {question} {chooser.labels(values)}\n")
    sys.stdout.flush()
    return values


def _output() -> Output:
    """Return the terminal output. Cursor position requests are off, because some terminals never answer."""
    depth = None if is_coloured(sys.stdout) else ColorDepth.DEPTH_1_BIT
    if sys.platform == "win32":
        from prompt_toolkit.output.defaults import create_output

        return create_output()
    from prompt_toolkit.output.vt100 import Vt100_Output

    def size() -> Size:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        return Size(rows=rows or 24, columns=columns or 80)

    return Vt100_Output(sys.stdout, size, term=os.environ.get("TERM"), default_color_depth=depth, enable_cpr=False)


def _keys(chooser: Chooser) -> KeyBindings:
    keys = KeyBindings()
    for names, step in ((("up", "c-p"), -1), (("down", "c-n", "tab"), 1), (("pageup",), -ROWS), (("pagedown",), ROWS)):
        for name in names:
            keys.add(name)(lambda _event, step=step: chooser.move(step))
    keys.add("backspace")(lambda _event: chooser.erase())
    if chooser.many:
        keys.add("space")(lambda _event: chooser.toggle())
        keys.add("right")(lambda _event: chooser.mark_all(on=True))
        keys.add("left")(lambda _event: chooser.mark_all(on=False))

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        values = chooser.accept()
        if values is not None:
            event.app.exit(result=values)

    @keys.add("c-c")
    @keys.add("c-d")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt)

    @keys.add("<any>")
    def _(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            chooser.type(event.data)

    return keys
