# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can do something about. Each knows the exit code that the command ends with."""

from __future__ import annotations

from dataclasses import dataclass

from base.text import clean, clean_lines


class WarpbedError(Exception):
    """Something failed that Warpbed can explain; the text says what, the value and the next step. Several texts: several things."""

    exit_code = 1

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))

    @property
    def shown(self) -> str:
        """For a terminal. Only what this program says begins a line: further lines of a text can be a stranger's, and are indented."""
        return "\n".join(clean_lines(str(text)).rstrip("\n").replace("\n", "\n  ") for text in self.args)


class UsageError(WarpbedError):
    """Bad usage or a bad file; nothing was started."""

    exit_code = 2


Name = str | int


class ParameterError(ValueError):
    """A bad value of a parameter. It carries which one, so that nobody has to read that back from the text.

    name: the parameter, and the place within it where it has parts: ("links", 0, "rate")
    text: what is wrong and what is allowed
    """

    def __init__(self, name: Name | tuple[Name, ...], text: str) -> None:
        self.name = name if isinstance(name, tuple) else (name,)
        self.text = text
        super().__init__(f"{'.'.join(map(str, self.name))}: {text}")

    @classmethod
    def at(cls, name: Name, error: ValueError) -> ParameterError:
        """An error of a parameter's value, as one of the parameter."""
        if isinstance(error, ParameterError):
            return cls((name, *error.name), error.text)
        return cls(name, str(error))


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a file. `line` counts from 1."""

    file: str
    line: int
    where: str
    message: str

    def __str__(self) -> str:
        return clean(f"{self.file}:{self.line}: {self.where + ': ' if self.where else ''}{self.message}")


class SpecError(UsageError):
    """An experiment file that cannot be used, with all its problems."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(*map(str, problems))
        self.problems = problems
