# SPDX-License-Identifier: Apache-2.0
"""Which experiments and models decide which entries of the catalogues; everything that is wrong about it is found before anything runs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.models import REGISTRY
from analysis.reproduction import afifi2014_dce as _afifi2014_dce  # noqa: F401 (registers what it decides)
from analysis.reproduction import afifi2014_ns3 as _afifi2014_ns3  # noqa: F401
from analysis.reproduction import afifi2014_windows as _afifi2014_windows  # noqa: F401
from analysis.reproduction import kato2012 as _kato2012  # noqa: F401
from analysis.reproduction import tokuda2003 as _tokuda2003  # noqa: F401
from analysis.reproduction import yu2009 as _yu2009  # noqa: F401
from analysis.reproduction import yu2009_growth as _yu2009_growth  # noqa: F401
from analysis.reproduction import yu2009_star as _yu2009_star  # noqa: F401
from analysis.reproduction import yu2009_table as _yu2009_table  # noqa: F401
from analysis.reproduction import yu2009_transfers as _yu2009_transfers  # noqa: F401
from analysis.reproduction.measured import EXPLAINED, MEASURED
from base.errors import Problem, SpecError, UsageError
from base.nearest import nearest
from base.paths import ROOT
from schema.catalogue import Catalogue, Entry, catalogues
from schema.claims import Claim
from schema.load import Document, load
from schema.model import Experiment
from schema.published import Published
from testbed.reproduction import emulated as _emulated  # noqa: F401 (registers what it decides)
from testbed.reproduction.printed import strange

BEYOND = ("drawn", "sensitivity")
"""Folders of experiments that decide no entry: paths off the published points, and other choices for what a thesis leaves open."""


@dataclass(frozen=True)
class Bound:
    """An experiment file that decides or explains entries, or looks beyond them. decides, explains, beyond: entry → parts."""

    path: Path
    experiment: Experiment
    document: Document
    decides: Mapping[str, tuple[str, ...]]
    explains: Mapping[str, tuple[str, ...]]
    beyond: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else str(self.path)

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.decides, *self.explains)))


@dataclass(frozen=True)
class Bindings:
    """All theses, and of each entry the experiments that speak of it. beyond: those that decide none of them."""

    theses: Mapping[str, Catalogue]
    experiments: tuple[Bound, ...]
    beyond: tuple[Bound, ...] = ()

    @functools.cached_property
    def entries(self) -> dict[str, Entry]:
        return {entry.id: entry for thesis in self.theses.values() for entry in thesis.entries}

    def of(self, entry: str) -> list[Bound]:
        return [bound for bound in self.experiments if entry in bound.entries]

    def how(self, entry: str) -> str:
        """What decides an entry, in a few words."""
        files = [Path(bound.file).name for bound in self.of(entry)]
        files += ["a calculation"] if entry in REGISTRY else []
        if files:
            return ", ".join(files)
        return "" if self.entries[entry].comparable == "no" else "not bound yet"


def read(root: Path = ROOT) -> Bindings:
    """All catalogues and what is bound to them.

    Raises SpecError where a file names an entry or part that is not there.
    """
    theses = catalogues(root)
    entries = {entry.id: entry for thesis in theses.values() for entry in thesis.entries}
    bounds: list[Bound] = []
    problems: list[Problem] = []
    for name in theses:
        for path in sorted((root / "experiments" / name).glob("*.yml")):
            experiment, document = load(path)
            decides, explains = (_named(experiment, which) for which in ("decides", "explains"))
            problems += _problems(experiment, document, entries)
            for named, table in ((decides, MEASURED), (explains, EXPLAINED)):
                for (entry, _), (by, parts, _) in table.items():
                    if experiment.name in by:
                        named[entry] = tuple(dict.fromkeys((*named.get(entry, ()), *parts)))
            if decides or explains:
                bounds.append(Bound(path, experiment, document, decides, explains))
    others = []
    for path in (file for name in BEYOND for file in sorted((root / "experiments" / name).glob("*.yml"))):
        experiment, document = load(path)
        problems += [*_problems(experiment, document, entries), *_beyond_problems(experiment, document, entries)]
        looks = {**_named(experiment, "off_point"), **_named(experiment, "choice")}
        others.append(Bound(path, experiment, document, {}, {}, looks))
    if problems:
        raise SpecError(problems)
    return Bindings(theses, tuple(bounds), tuple(others))


def _beyond_problems(experiment: Experiment, document: Document, entries: Mapping[str, Entry]) -> Iterator[Problem]:
    for i, claim in enumerate(experiment.claims):
        for which in ("off_point", "choice"):
            place = document.line(("claims", i, which))
            for name in getattr(claim, which):
                entry, _, part = name.partition("/")
                if entry not in entries:
                    wrong = f"no catalogue has an entry {entry!r}; {nearest(entry, entries)}"
                elif which == "off_point" and part not in (known := entries[entry].parts()):
                    wrong = f"{entry} has no part {part!r}; {nearest(part, known) if known else 'it has none'}"
                elif which == "choice" and not (part.isdecimal() and 0 < int(part) <= len(entries[entry].open)):
                    wrong = (
                        f"{entry} leaves {len(entries[entry].open)} things open; write the number of one, not {part!r}"
                    )
                else:
                    continue
                yield Problem(document.file, place, f"claims.{i}.{which}", wrong)
        if not claim.off_point and not claim.choice:
            line = document.line(("claims", i))
            yield Problem(document.file, line, f"claims.{i}", "name what it is about, with off_point or choice")
        if claim.off_point and (experiment.sweep is None or experiment.sweep.drawn is None):
            line = document.line(("claims", i, "off_point"))
            yield Problem(document.file, line, f"claims.{i}.off_point", "nothing is drawn; write sweep.drawn")


def _named(experiment: Experiment, which: str) -> dict[str, tuple[str, ...]]:
    by_part: dict[str, list[str]] = {}
    for one in (*experiment.claims, *experiment.published):
        for name in getattr(one, which, ()):
            entry, _, part = name.partition("/")
            by_part.setdefault(entry, []).append(part)
    return {entry: tuple(dict.fromkeys(parts)) for entry, parts in by_part.items()}


def _problems(experiment: Experiment, document: Document, entries: Mapping[str, Entry]) -> Iterator[Problem]:
    for section in ("claims", "published"):
        for i, one in enumerate(getattr(experiment, section)):
            for which in ("decides", "explains"):
                for name in getattr(one, which, ()):
                    place = document.line((section, i, which))
                    for wrong in _wrong(name, one, entries):
                        yield Problem(document.file, place, f"{section}.{i}.{which}", wrong)


def _wrong(name: str, one: Claim | Published, entries: Mapping[str, Entry]) -> Iterator[str]:
    entry, _, part = name.partition("/")
    if entry not in entries:
        yield f"no catalogue has an entry {entry!r}; {nearest(entry, entries)}"
    elif part not in (known := entries[entry].parts()):
        yield f"{entry} has no part {part!r}; {nearest(part, known) if known else 'it has none'}"
    else:
        yield from strange(one, entries[entry])


def chosen(bindings: Bindings, names: Sequence[str]) -> list[Entry]:
    """The entries that the words name: a thesis, an entry, or an entry without its thesis where that says which; all without words.

    Raises UsageError for a word that names nothing.
    """
    if not names:
        return list(bindings.entries.values())
    by_id: dict[str, Entry] = {}
    for word in names:
        named = [entry for entry in bindings.entries.values() if word in (entry.id, entry.id.partition("-")[0])]
        named = named or [entry for entry in bindings.entries.values() if entry.id.partition("-")[2] == word]
        if not named:
            known = [*bindings.theses, *bindings.entries]
            raise UsageError(f"{word}: no thesis or entry of that name; {nearest(word, known)}; --list shows all")
        if len({entry.id.partition("-")[0] for entry in named}) > 1:
            raise UsageError(f"{word}: {', '.join(entry.id for entry in named)}; write which")
        by_id |= {entry.id: entry for entry in named}
    return list(by_id.values())
