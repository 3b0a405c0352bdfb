"""Shows the lines of a running compile: one line that changes in a notebook or a terminal."""

import shutil
import sys
from typing import Callable, Optional, Union

from npuc.programs import Progress

Choice = Union[str, Callable[[str], None], None]


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


def notebook() -> Callable[[str], None]:
    """A cell's output that has the newest line."""
    from IPython.display import display  # pylint: disable=import-outside-toplevel
    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda line: handle.update({"text/plain": line}, raw=True)


def terminal(line: str) -> None:
    """The newest line in place of the one before, cut to the terminal's width."""
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write("\r\x1b[K" + line[:width])
    sys.stderr.flush()


class Shown:
    """`with Shown(choice) as progress`: choice is a function of a line, None (nothing is shown), or
    "auto": a notebook's cell, else a terminal, else nothing."""

    def __init__(self, choice: Choice):
        if choice is not None and choice != "auto" and not callable(choice):
            raise ValueError(f"progress is {choice!r}; allowed are 'auto', None and a function")
        self._choice = choice
        self._clears = False

    def __enter__(self) -> Progress:
        if self._choice != "auto":
            return self._choice
        if in_notebook():
            return notebook()
        if not sys.stderr.isatty():
            return None
        self._clears = True
        return terminal

    def __exit__(self, *_: Optional[object]) -> None:
        if self._clears:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
