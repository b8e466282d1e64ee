# SPDX-License-Identifier: Apache-2.0
"""What was learned: sentences of the catalogues, each with what became of the parts that show it; and what nobody can reproduce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.reproduction.markdown import cell, entry_link, short, text
from analysis.reproduction.outcomes import Evidence, Judged, came_to
from analysis.table import number
from schema.catalogue import Calculated, Catalogue, Entry, Learned

TITLES = {
    "itself": "Where a thesis contradicts itself",
    "simulator": "What the simulator did",
    "units": "Units",
    "linux": "What Linux does differently, and what that changes",
    "stability": "What comes out as the theses say",
}


def section(theses: Mapping[str, Catalogue], entries: Mapping[str, Judged]) -> Iterator[str]:
    """For the page over all: each sentence with the parts that show it, as a conjecture where one of them came to something else."""
    sentences = [one for thesis in theses.values() for one in thesis.learned]
    if sentences:
        yield (
            "\n## What was learned\n\nEach sentence names the parts of entries that show it, with what was measured. Where one of them "
            "came to something else, or was not run, the sentence is a conjecture, and is called one.\n"
        )
    for topic, title in TITLES.items():
        mine = [one for one in sentences if one.topic == topic]
        if mine:
            yield f"\n### {title}\n\n"
            yield from (_sentence(one, entries) for one in mine)
    yield "".join(_lost(theses))


def is_shown(one: Learned, entries: Mapping[str, Judged]) -> bool:
    """Whether all of its parts and sums came to what it needs; a sentence without either is shown by nothing."""
    return (
        bool(one.shown or one.calculated)
        and all(sum_.holds for sum_ in one.calculated)
        and all(
            _came_to(name, entries) == wanted or _explains(name, wanted, entries) for name, wanted in one.shown.items()
        )
    )


def _evidence(name: str, entries: Mapping[str, Judged]) -> list[Evidence]:
    entry, _, part = name.partition("/")
    return [one for one in entries[entry].evidence if one.part == part] if entry in entries else []


def _explains(name: str, wanted: str, entries: Mapping[str, Judged]) -> bool:
    return wanted == "explains" and any(one.explains and one.held == "holds" for one in _evidence(name, entries))


def _came_to(name: str, entries: Mapping[str, Judged]) -> str:
    return came_to(_evidence(name, entries), name.partition("/")[2])


def _sentence(one: Learned, entries: Mapping[str, Judged]) -> str:
    proofs = "; ".join(
        [*map(_sum, one.calculated), *(_proof(name, wanted, entries) for name, wanted in one.shown.items())]
    )
    if is_shown(one, entries):
        return f"- {text(one.says)} ({proofs})\n"
    return f"- *Conjecture:* {text(one.says)} ({proofs or 'no run shows it'})\n"


def _sum(one: Calculated) -> str:
    bound = f"above {number(one.above)}" if one.above is not None else f"below {number(one.below or 0.0)}"
    return text(
        " ".join(
            filter(
                None, (f"{one.formula} = {number(one.value)}", one.unit, f"{'is' if one.holds else 'is not'} {bound}")
            )
        )
    )


def _proof(name: str, wanted: str, entries: Mapping[str, Judged]) -> str:
    """The part, what became of it, and the first thing measured that says so."""
    entry, _, part = name.partition("/")
    link = entry_link(entry, part=part)
    proofs = [
        one for one in _evidence(name, entries)
        if (one.explains if wanted == "explains" else not one.explains and one.held == wanted)
    ]  # fmt: skip
    if wanted == "explains":
        said = next((one.measured or one.says for one in proofs if one.held == "holds"), "")
        return f"{link}: {cell(short(said, 200))}" if said else f"{link} is not explained"
    came = _came_to(name, entries)
    word = {"holds": "holds", "contradicted": "does not hold"}.get(came, came)
    measured = next((one for one in proofs if one.measured), None) if came == wanted else None
    if measured is None:
        return f"{link} {word}"
    asked = f"{measured.published} asked, " if measured.published else ""
    return f"{link} {word}: {cell(short(asked + measured.measured, 160))}"


def _lost(theses: Mapping[str, Catalogue]) -> Iterator[str]:
    """Entries, and parts of entries, that the texts alone do not let anyone reproduce."""
    gone = [entry for thesis in theses.values() for entry in thesis.entries if entry.comparable == "no"]
    parts = [
        (entry, part, why)
        for thesis in theses.values()
        for entry in thesis.entries
        for part, why in entry.left_out.items()
    ]
    if not gone and not parts:
        return
    yield (
        f"\n## What nobody can reproduce from the texts alone\n\n{len(gone)} entries, and {len(parts)} parts of others.\n\n"
        "| entry | what | why |\n|---|---|---|\n"
    )
    for entry in gone:
        yield f"| {entry.id} | {cell(entry.title)} | {cell(entry.reason)} |\n"
    for entry, part, why in parts:
        yield f"| {_linked(entry, part)} | {cell(short(entry.says(part)))} | {cell(why)} |\n"


def _linked(entry: Entry, part: str) -> str:
    return entry_link(entry.id, part=part)
