# SPDX-License-Identifier: Apache-2.0
"""What the pages say of drawn paths and of other choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.reproduction.beyond import Beyond, Place
from analysis.reproduction.markdown import anchor, cell, entry_link, file_link
from analysis.reproduction.outcomes import Judged, came_to
from analysis.table import number

WORDS = {"holds": "holds", "contradicted": "does not hold"}


def off_points(looks: Sequence[Beyond], entries: Mapping[str, Judged]) -> Iterator[str]:
    """The section of a thesis' page: how many paths each claim holds on, then each path. Nothing where nothing is drawn."""
    drawn = [one for one in looks if one.look == "off_point"]
    if not drawn:
        return
    yield (
        "\n## Off the published points\n\nThe direction of the main claims on paths that a seed draws around the thesis' own setting. "
        "The paths are the sample: each is judged by its means, and *chance* is how often so many or more would hold if each did so "
        "with one half. It decides no entry.\n\n"
    )
    yield "| claim | of | at the thesis' own point | drawn paths | so | by |\n|---|---|---|---|---|---|\n"
    for one in drawn:
        links = ", ".join(f"[{name}](#{anchor(name.partition('/')[0])})" for name in one.names)
        here = f"{at_the_point(one, entries)} | {tally(one)} | {verdict(one, entries)}"
        yield f"| {cell(one.says)} | {links} | {here} | {file_link(one.by)} |\n"
    for by in dict.fromkeys(one.by for one in drawn):
        yield "".join(_paths([one for one in drawn if one.by == by]))


def _paths(same: Sequence[Beyond]) -> Iterator[str]:
    """A table with a row for each path of one file."""
    yield f"\n{file_link(same[0].by)}, drawn around {cell(same[0].around)}:\n\n"
    yield "| path | " + " | ".join(cell(one.says) for one in same) + " |\n|---|" + "---|" * len(same) + "\n"
    labels = dict.fromkeys(place.label for one in same for place in one.places)
    for label in labels:
        places = [next((place for place in one.places if place.label == label), None) for one in same]
        yield f"| {cell(label)} | " + " | ".join("" if place is None else shown(place) for place in places) + " |\n"


def shown(place: Place) -> str:
    word = WORDS.get(place.held, place.held)
    return f"{word}: {cell(place.measured)}" if place.measured else word


def tally(one: Beyond) -> str:
    rest = [
        (one.count("contradicted"), "not on"),
        (one.count("undecided"), "undecided:"),
        (one.count("not run yet"), "not run yet:"),
    ]
    others = ", ".join(f"{label} {n}" for n, label in rest if n)
    chance = f"; chance {number(one.chance)}" if one.chance is not None and one.count("holds") else ""
    return f"holds on **{one.count('holds')} of {len(one.places)}**" + (f" ({others})" if others else "") + chance


def at_the_point(one: Beyond, entries: Mapping[str, Judged]) -> str:
    """What became of the parts themselves, at the thesis' own setting."""
    outcomes = []
    for name in one.names:
        entry, _, part = name.partition("/")
        judged = entries.get(entry)
        worst = came_to(judged.evidence if judged else (), part)
        outcomes.append(WORDS.get(worst, worst))
    return ", ".join(dict.fromkeys(outcomes))


def verdict(one: Beyond, entries: Mapping[str, Judged]) -> str:
    """In words: everywhere, not everywhere, only on the thesis' own point, nowhere."""
    holds, fails = one.count("holds"), one.count("contradicted")
    if holds == len(one.places):
        return "everywhere"
    if holds + fails < len(one.places):
        return "not run yet" if one.count("not run yet") else "undecided"
    if holds == 0:
        return "only on the thesis' own point" if at_the_point(one, entries) == "holds" else "on none"
    return "not everywhere"


def summary(looks: Sequence[Beyond], entries: Mapping[str, Judged]) -> Iterator[str]:
    """Of all theses, for the page over all."""
    drawn = [one for one in looks if one.look == "off_point"]
    if drawn:
        yield (
            "\n## Off the published points\n\nMain claims on paths that a seed draws around the thesis' own setting, each judged by its "
            "means; the page of the thesis has them one by one.\n\n"
        )
        yield "| claim | of | at the thesis' own point | drawn paths | so |\n|---|---|---|---|---|\n"
        for one in drawn:
            links = ", ".join(map(entry_link, one.entries))
            yield f"| {cell(one.says)} | {links} | {at_the_point(one, entries)} | {tally(one)} | {verdict(one, entries)} |\n"
    chosen = [one for one in looks if one.look == "choice"]
    if chosen:
        yield "".join(_choices(chosen, entries))


MATTERS = {True: "matters", False: "does not matter", None: "undecided"}


def _choices(chosen: Sequence[Beyond], entries: Mapping[str, Judged]) -> Iterator[str]:
    """How many things the texts leave open, and whether those that were varied matter."""
    opened = questions([one for one in entries.values() if one.entry.comparable != "no"])
    tried = {opened[name] for one in chosen for name in one.names if name in opened}
    shared = sum(question in tried for question in opened.values())
    yield (
        f"\n## Choices for what the texts leave open\n\nThe entries that can be compared leave {len(set(opened.values()))} things "
        f"open, some of them at many entries ({len(opened)} places). {len(tried)} of them were varied, which stand at {shared} places; "
        "others are lost images and axes, or say how a sentence was read. A choice matters where a claim holds with one value and not "
        "with another.\n\n"
    )
    yield "| entry | claim | outcomes | so | by |\n|---|---|---|---|---|\n"
    for one in chosen:
        links = ", ".join(map(entry_link, one.entries))
        places = "; ".join(f"{cell(place.label)}: {shown(place)}" for place in one.places)
        yield f"| {links} | {cell(one.says)} | {places} | {MATTERS[one.matters]} | {file_link(one.by)} |\n"


def questions(entries: Sequence[Judged]) -> dict[str, str]:
    """ENTRY/N → what is open there; entries that share a setting say the same."""
    return {
        f"{one.entry.id}/{number}": question
        for one in entries
        for number, question in enumerate(one.entry.open, start=1)
    }


def choices_of(question: str, looks: Sequence[Beyond], opened: Mapping[str, str]) -> Iterator[str]:
    """What varying one open thing came to, at whichever entry that leaves it open, as lines of a list."""
    for one in looks:
        if one.look == "choice" and question in [opened.get(name) for name in one.names]:
            places = "; ".join(f"{cell(place.label)}: {shown(place)}" for place in one.places)
            yield f"- Varied in {file_link(one.by)}, where it **{MATTERS[one.matters]}**: {cell(one.says)} {places}.\n"
