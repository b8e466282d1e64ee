# SPDX-License-Identifier: Apache-2.0
"""What a YAML text consists of, read by libyaml, which is much faster than in Python.

Only of texts that every version of YAML reads alike. What values mean, and what is wrong with a text, ruamel.yaml says as ever.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Generator
from typing import Any

from ruamel.yaml import YAML, events

try:
    from yaml.cyaml import CParser  # comes with Ansible; where results are only loaded it may be missing
except ImportError:
    CParser = None

STRANGE = re.compile(r"[^\n -~\u00a0-\u1fff\u2010-\u2027\u2030-\ud7ff]|\\|^%", re.MULTILINE)
"""What versions of YAML, or their readers, may take differently: tabs and other line ends, escapes, directives."""


class NotAlikeError(Exception):
    """The text is one for ruamel.yaml alone."""


def read(text: str) -> Any:
    """The values with their lines, as ruamel.yaml gives them; raises NotAlikeError for a text that may mean something else to libyaml."""
    if CParser is None or STRANGE.search(text):
        raise NotAlikeError
    yaml = YAML(typ="rt", pure=True)
    yaml.allow_duplicate_keys = False
    yaml.Parser = functools.partial(_Events, text)
    try:
        return yaml.load("")
    except Exception as error:  # whatever it is: ruamel.yaml says it in its own words
        raise NotAlikeError from error


class _Events:
    """Stands where ruamel.yaml has its parser."""

    def __init__(self, text: str, loader: Any) -> None:
        loader._parser = self
        self._coming = _events(text)
        self._next: Any = next(self._coming)

    def check_event(self, *kinds: type) -> bool:
        return isinstance(self._next, kinds)

    def peek_event(self) -> Any:
        return self._next

    def get_event(self) -> Any:
        event, self._next = self._next, next(self._coming, None)
        return event

    def dispose(self) -> None:
        self._coming.close()


def _events(text: str) -> Generator[Any, None, None]:
    parser = CParser(text)
    while (event := parser.get_event()) is not None:
        kind, at, end = type(event).__name__, event.start_mark, event.end_mark
        if kind == "AliasEvent" or getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise NotAlikeError
        if kind == "ScalarEvent":
            yield events.ScalarEvent(None, None, event.implicit, event.value, at, end, event.style)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            yield getattr(events, kind)(None, None, True, at, end, bool(event.flow_style))
        else:
            yield getattr(events, kind)(at, end)
