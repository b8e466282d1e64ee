# SPDX-License-Identifier: Apache-2.0
"""Read an experiment file; every problem is reported with file and line before anything starts."""

from __future__ import annotations

import copy
import difflib
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.scanner import Scanner

from base.errors import Problem, SpecError, UsageError
from base.nearest import nearest
from schema import patterns, yaml_events
from schema.model import Experiment

MAX_FILE_BYTES = 1 << 20
MAX_NODES = 100_000
MAX_DEPTH = 30
MAX_BITS = 1024
"""Of a whole number: no quantity is larger, and Python prints no number of many thousand digits."""

Loc = tuple[int | str, ...]
T = TypeVar("T", bound=BaseModel)


class Document:
    """A YAML file as plain data, with the line of every value."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        if (line := _too_deep(text)) is not None:
            raise SpecError([Problem(file, line, "", f"more than {MAX_DEPTH} levels")])
        try:
            self._tree = _composed(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise SpecError([Problem(file, line, "", f"not YAML: {error.problem or error.context}")]) from error
        except (YAMLError, ValueError) as error:
            raise SpecError([Problem(file, 1, "", f"not YAML: {error}")]) from error
        except TypeError as error:  # a list or a mapping in the place of a key
            raise SpecError(
                [
                    Problem(
                        file,
                        1,
                        "",
                        "not YAML for plain data: a key is no single value; write a name before each colon, no list and no mapping",
                    )
                ]
            ) from error
        self._count = 0
        self._moved: dict[Loc, int] = {}
        self.data = self._plain(self._tree, 0)

    def _plain(self, node: Any, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_NODES or depth > MAX_DEPTH:
            raise SpecError([Problem(self.file, 1, "", f"more than {MAX_NODES} values or {MAX_DEPTH} levels")])
        if isinstance(node, Mapping):
            return {self._text(str(key)): self._plain(value, depth + 1) for key, value in node.items()}
        if isinstance(node, list):
            return [self._plain(value, depth + 1) for value in node]
        if isinstance(node, bool) or node is None:
            return node
        if isinstance(node, int) and node.bit_length() > MAX_BITS:
            raise SpecError(
                [Problem(self.file, 1, "", f"a whole number of {node.bit_length()} bits; at most {MAX_BITS}")]
            )
        for kind in (int, float):
            if isinstance(node, kind):
                return kind(node)
        return self._text(str(node))

    def _text(self, text: str) -> str:
        """The text, of characters that a file can hold; an escape such as "\\uD800" stands for half of one."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(text[error.start]):04X}"
            message = f"{half} is half a character, which no file can hold; write the whole one"
            raise SpecError([Problem(self.file, 1, "", message)]) from error
        return text

    def with_lines(self, moved: Mapping[Loc, int]) -> Document:
        """The same file, where the values at some places come from other lines (those of a sweep)."""
        other = copy.copy(self)
        other._moved = {**self._moved, **moved}
        return other

    def line(self, loc: Loc) -> int:
        """Line of the value at loc, or of the nearest thing around it that the file has."""
        for length in range(len(loc), 0, -1):
            if loc[:length] in self._moved:
                return self._moved[loc[:length]]
        node: Any = self._tree
        line = 1
        for part in loc:
            try:
                if isinstance(node, CommentedMap) and part in node:
                    line = node.lc.key(part)[0] + 1
                elif isinstance(node, CommentedSeq) and isinstance(part, int):
                    line = node.lc.item(part)[0] + 1
                else:
                    continue
                node = node[part]
            except (KeyError, IndexError, AttributeError, TypeError):
                break
        return line


@functools.lru_cache(maxsize=512)
def _composed(text: str) -> Any:
    """The values with their lines, to be read only. Remembered, since parsing is nearly all of what reading a file takes.

    As many as there are experiments and more: of fewer, who reads all of them again in the same order finds none.
    """
    try:
        return yaml_events.read(text)
    except yaml_events.NotAlikeError:
        yaml = YAML(typ="rt", pure=True)
        yaml.Scanner = Scanner  # without comments, which nobody reads here and which it may fail to place
        yaml.allow_duplicate_keys = False
        return yaml.load(text)


def _too_deep(text: str) -> int | None:
    """The line where a YAML text nests too deeply; found without composing it, which takes a recursion a level."""
    deepest_flow = max(itertools.accumulate((_FLOW[character] for character in _FLOWS.findall(text)), initial=0))
    deepest_block = max((len(line) - len(line.lstrip(" -?")) for line in text.splitlines()), default=0)
    if deepest_flow <= MAX_DEPTH and deepest_block <= MAX_DEPTH:
        return None
    depth = 0
    try:
        for event in YAML(typ="rt", pure=True).parse(text):
            if isinstance(event, CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    return int(event.start_mark.line) + 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
    except YAMLError:
        return None  # composing says what is wrong
    return None


_FLOW = {"[": 1, "{": 1, "]": -1, "}": -1}
_FLOWS = re.compile(r"[\[\]{}]")


def load(path: Path) -> tuple[Experiment, Document]:
    """The experiment of a file.

    Raises SpecError with all problems, UsageError where there is no such file.
    """
    document = read(path)
    assert isinstance(document.data, dict)
    return validate(document.data, document), document


def read(path: Path) -> Document:
    """A file of Warpbed's own as plain data: a mapping, not yet validated. Raises as `load` does."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; ./warpbed list experiments shows those that come along") from error
    if len(raw) > MAX_FILE_BYTES:
        raise SpecError(
            [Problem(str(path), 1, "", f"{len(raw)} bytes; an experiment file has at most {MAX_FILE_BYTES}")]
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise SpecError([Problem(str(path), line, "", f"not UTF-8 at byte {error.start}")]) from error
    document = Document(str(path), text)
    if not isinstance(document.data, dict):
        raise SpecError([Problem(str(path), 1, "", "such a file is a mapping that starts with `warpbed: 1`")])
    return document


def validate(data: Mapping[str, Any], document: Document) -> Experiment:
    """Validate plain data that came from a document."""
    return validate_as(Experiment, data, document)


def validate_as(model: type[T], data: Mapping[str, Any], document: Document) -> T:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise SpecError(list(_problems(error, data, document, model))) from error


def _problems(
    error: ValidationError, data: Mapping[str, Any], document: Document, model: type[BaseModel]
) -> Iterator[Problem]:
    seen = set()
    for item in error.errors():
        loc = _existing(item["loc"], data, item["type"])
        problem = Problem(document.file, document.line(loc), ".".join(map(str, loc)), _message(item, loc, model))
        if problem not in seen:
            seen.add(problem)
            yield problem


def _existing(loc: Sequence[int | str], data: Any, kind: str) -> Loc:
    """The part of pydantic's location that is in the file (it adds the names of union members)."""
    existing: list[int | str] = []
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(data, Mapping) and (part in data or (last and kind == "missing")):
            existing.append(part)
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            existing.append(part)
            data = data[part]
    return tuple(existing)


def _message(item: Any, loc: Loc, model: type[BaseModel]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    value = item.get("input")
    value_text = "" if isinstance(value, dict | list) else f"{value!r}: "
    if kind == "extra_forbidden":
        return _unknown_key(str(loc[-1]) if loc else "", item, model)
    if kind == "missing":
        return "is required and missing"
    if kind == "value_error":
        return str(context.get("error", item["msg"]))
    if kind == "literal_error":
        allowed = context.get("expected", "")
        if not isinstance(value, str) and repr(str(value)) in allowed:
            return f"{value_text}a text is needed here, in quotes: '{value}'; allowed: {allowed}"
        near = difflib.get_close_matches(str(value), allowed.replace("'", "").replace(" or ", ", ").split(", "), n=1)
        return f"{value_text}{'did you mean ' + near[0] + '? ' if near else ''}allowed: {allowed}"
    if kind == "union_tag_not_found":
        return f"`kind` is required; allowed: {', '.join(_kinds())}"
    if kind == "union_tag_invalid":
        return f"there is no kind {context.get('tag')!r}; {nearest(str(context.get('tag')), _kinds())}"
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        return f"{value_text}must be {patterns.WORDS.get(pattern, f'of the form {pattern}')}"
    if kind == "string_type":
        return f"{value_text}a text is needed; a quantity has a unit, such as 48ms, 50mbit, 250p or 64KB"
    message: str = item["msg"]
    return f"{value_text}{message[0].lower()}{message[1:]}"


def _unknown_key(key: str, item: Any, model: type[BaseModel]) -> str:
    allowed = _keys_at(item["loc"][:-1], model)
    near = difflib.get_close_matches(key, allowed, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no key {key!r} here; {hint}allowed: {', '.join(allowed)}"


def _kinds() -> list[str]:
    """The kinds of traffic: the only place of the schema where a key says which other keys there are."""
    schema = _schema(Experiment)
    return sorted(schema["properties"]["traffic"]["items"]["discriminator"]["mapping"])


@functools.lru_cache(maxsize=16)
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """The exported JSON Schema of a kind of file, to be read only."""
    return model.model_json_schema(by_alias=True)


def _keys_at(loc: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    """Keys that the schema allows at a location, read from the exported JSON Schema."""
    schema = _schema(model)
    definitions, here = schema.get("$defs", {}), schema
    for part in loc:
        options = [here, *here.get("anyOf", [])]
        options = [definitions[o["$ref"].rsplit("/", 1)[-1]] if "$ref" in o else o for o in options]
        for option in options:
            if part in option.get("discriminator", {}).get("mapping", {}):
                here = {"$ref": option["discriminator"]["mapping"][part]}
                break
            if isinstance(part, int) and "items" in option:
                here = option["items"]
                break
            if part in option.get("properties", {}):
                here = option["properties"][part]
                break
            if isinstance(option.get("additionalProperties"), dict):
                here = option["additionalProperties"]
                break
    options = [here, *here.get("anyOf", [])]
    options = [definitions[o["$ref"].rsplit("/", 1)[-1]] if "$ref" in o else o for o in options]
    return sorted({key for option in options for key in option.get("properties", {})})
