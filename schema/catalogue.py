# SPDX-License-Identifier: Apache-2.0
"""A thesis' catalogue: each table, figure and claim of a result as one entry. docs/reproduction.md has the keys.

`entry/part` names what a claim of an experiment file, or a model, decides: the number of one of the entry's claims (from 1), or the key of
one of its published numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from base.errors import Problem, SpecError
from base.formula import FormulaError, value
from base.nearest import nearest
from base.paths import ROOT
from schema import patterns
from schema.base import Model, Name
from schema.claims import PartName
from schema.load import Document, read, validate_as

FILE = "catalogue.yaml"
"""In experiments/<thesis>/; the files *.yml beside it are experiments."""


class Where(Model):
    section: str = ""
    page: str = ""


class Printed(Model):
    """What the thesis prints. numbers: by name, a table as columns and rows, or tables in a list; null where they are lost."""

    numbers: dict[str, Any] | list[Any] | None = None
    claims: list[str] = []


class Cost(Model):
    """The thesis' own runs: length of each, rate of the bottleneck, how many, and the product of all, Gbit."""

    virtual_s: float
    mbit_s: float
    runs: float
    gbit: float
    note: str = ""


class Entry(Model):
    """left_out: part → why it cannot be compared, where the rest of the entry can."""

    id: Annotated[str, Field(pattern=patterns.ENTRY)]
    title: str
    where: Where
    kind: Literal["table", "figure", "claim"]
    comparable: Literal["yes", "partly", "no"]
    reason: str = ""
    setting: Any = None
    sweep: Any = None
    metrics: list[Any] = []
    published: Printed
    derived: Any = None
    how: list[str] = []
    open: list[str] = []
    left_out: dict[str, str] = {}
    cost: Cost

    def parts(self) -> tuple[str, ...]:
        """What can be decided: each claim by its number, each published number by its key."""
        keys = tuple(self.published.numbers) if isinstance(self.published.numbers, Mapping) else ()
        if isinstance(self.published.numbers, list):
            keys = ("numbers",)
        return (*(str(i) for i in range(1, len(self.published.claims) + 1)), *keys)

    def says(self, part: str) -> str:
        """A part in words."""
        if part.isdecimal() and 0 < int(part) <= len(self.published.claims):
            return self.published.claims[int(part) - 1]
        return part.replace("_", " ")

    @model_validator(mode="after")
    def _known_parts(self) -> Entry:
        for part in self.left_out:
            if part not in self.parts():
                raise ValueError(f"left_out names {part!r}; {nearest(part, self.parts())}")
        return self


Topic = Literal["itself", "simulator", "units", "linux", "stability"]
"""Of what was learned: a thesis against itself, what its simulator did, units, what Linux does differently, what is as the thesis says."""


class Calculated(Model):
    """A sum of printed numbers, and the bound that its value has to keep. unit: of the value"""

    formula: Annotated[str, Field(min_length=1, max_length=200)]
    above: float | None = None
    below: float | None = None
    unit: str = ""

    @model_validator(mode="after")
    def _readable(self) -> Calculated:
        if (self.above is None) == (self.below is None):
            raise ValueError("write above or below, one of them")
        try:
            value(self.formula, {})
        except FormulaError as error:
            raise ValueError(f"formula {self.formula!r}: {error}") from error
        return self

    @property
    def value(self) -> float:
        return value(self.formula, {})

    @property
    def holds(self) -> bool:
        return (self.above is None or self.value > self.above) and (self.below is None or self.value < self.below)


class Learned(Model):
    """A sentence on what the reproduction taught, and what has to come out for it: entry/part → what became of the part.

    explains: a run or a calculation in which the thesis' result appears, or which shows why it does not
    calculated: sums of the thesis' own numbers that show it, too
    """

    topic: Topic
    says: Annotated[str, Field(min_length=1)]
    shown: dict[PartName, Literal["holds", "contradicted", "explains"]] = {}
    calculated: list[Calculated] = []


class Catalogue(Model):
    catalogue: Name
    thesis: str
    learned: list[Learned] = []
    entries: Annotated[list[Entry], Field(min_length=1)]

    @model_validator(mode="after")
    def _own_names(self) -> Catalogue:
        seen: set[str] = set()
        for entry in self.entries:
            if entry.id in seen:
                raise ValueError(f"{entry.id} occurs twice")
            if not entry.id.startswith(f"{self.catalogue}-"):
                raise ValueError(f"{entry.id}: an entry of {self.catalogue} begins with {self.catalogue}-")
            seen.add(entry.id)
        parts = {f"{entry.id}/{part}" for entry in self.entries for part in entry.parts()}
        for one in self.learned:
            for name in one.shown:
                if name not in parts:
                    raise ValueError(f"learned: {name} is no part of an entry; {nearest(name, parts)}")
        return self


def load(path: Path) -> tuple[Catalogue, Document]:
    """The catalogue of a file. Raises SpecError with all problems, UsageError where there is no such file."""
    document = read(path)
    return validate_as(Catalogue, document.data, document), document


def catalogues(root: Path = ROOT) -> dict[str, Catalogue]:
    """All theses by name, in the order of their names."""
    by_thesis = {}
    for path in sorted((root / "experiments").glob(f"*/{FILE}")):
        catalogue, document = load(path)
        if catalogue.catalogue != path.parent.name:
            wrong = f"{catalogue.catalogue!r}: the folder is {path.parent.name}"
            raise SpecError([Problem(str(path), document.line(("catalogue",)), "catalogue", wrong)])
        by_thesis[catalogue.catalogue] = catalogue
    return by_thesis


def numbers_in(value: Any) -> Iterator[float]:
    """Every number of published data, in its order."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
