# SPDX-License-Identifier: Apache-2.0
"""A page per thesis, and one over all, made from outcomes: Markdown with figures beside it. Nothing on them is typed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from analysis.reproduction import beyond_pages, learned, recorded
from analysis.reproduction.beyond import Beyond
from analysis.reproduction.figures import draw
from analysis.reproduction.markdown import anchor, cell, entry_link, few, file_link, short, text
from analysis.reproduction.outcomes import Evidence, Judged
from analysis.reproduction.recorded import Recorded
from base.files import replace_bytes
from schema.catalogue import Catalogue
from schema.model import Experiment

HEAD = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Made by `./warpbed reproduce --pages docs/reproduction`; do not edit. -->\n"


def write_pages(
    folder: Path,
    theses: Mapping[str, Catalogue],
    judged: Sequence[Judged],
    experiments: Mapping[str, tuple[Experiment, Recorded]],
    only: Collection[str] = (),
    beyond: Sequence[Beyond] = (),
) -> list[Path]:
    """Write the pages of theses, each with the record of its runs, and the one over all; returns the files.

    found: all entries of each thesis
    beyond: what became of claims on drawn paths and under other choices
    experiments: file → (experiment, its runs, those of an earlier record among them)
    only: the theses whose pages are written; all without
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    by_thesis: dict[str, list[Judged]] = {}
    for one in judged:
        by_thesis.setdefault(one.entry.id.partition("-")[0], []).append(one)
    runs = {file: (experiment, kept.runs) for file, (experiment, kept) in experiments.items()}
    for name, entries in by_thesis.items():
        if only and name not in only:
            continue
        figures = draw(folder, entries, runs)
        written += figures.values()
        written.append(_put(folder / f"{name}.md", "".join(_page(theses[name], entries, figures, folder, beyond))))
        mine = {file: both for file, both in experiments.items() if Path(file).parent.name == name}
        if mine:
            written.append(_put(recorded.file_of(folder, name), recorded.text(mine)))
    if set(by_thesis) == set(theses):
        written.append(_put(folder / "README.md", "".join(_over_all(theses, by_thesis, beyond))))
        for name in sorted({Path(one.by).parent.name for one in beyond}):
            mine = {file: both for file, both in experiments.items() if Path(file).parent.name == name}
            if mine:
                written.append(_put(recorded.file_of(folder, name), recorded.text(mine)))
    return written


def _put(file: Path, text: str) -> Path:
    replace_bytes(file, text.encode())
    return file


def _page(
    thesis: Catalogue, entries: Sequence[Judged], figures: Mapping[str, Path], folder: Path, beyond: Sequence[Beyond]
) -> Iterator[str]:
    yield HEAD
    yield f"# {text(thesis.thesis)}\n\n"
    yield (
        "Entry by entry what the thesis reports and what runs on the Linux stack, or a calculation, came to. "
        "[How it is decided](../reproduction.md); [all theses](README.md).\n\n"
    )
    yield "".join(_counts(entries)) + "\n"
    yield "| entry | what | outcome | why |\n|---|---|---|---|\n"
    for one in entries:
        reason = one.reason if one.outcome != "cannot be compared" or one.entry.comparable != "no" else one.entry.reason
        name = f"[{one.entry.id}](#{anchor(one.entry.id)})" if one.evidence else one.entry.id
        yield f"| {name} | {cell(one.entry.title)} | {one.word} | {cell(short(reason))} |\n"
    by_id = {one.entry.id: one for one in entries}
    opened = beyond_pages.questions(entries)
    yield from beyond_pages.off_points([one for one in beyond if set(one.entries) & set(by_id)], by_id)
    for one in entries:
        if one.evidence:
            yield "".join(_section(one, figures, folder, beyond, opened))


def _section(
    one: Judged, figures: Mapping[str, Path], folder: Path, beyond: Sequence[Beyond], opened: Mapping[str, str]
) -> Iterator[str]:
    entry = one.entry
    place = f"section {text(entry.where.section)}, page {text(entry.where.page)}"
    yield f"\n## {entry.id}\n\n{text(entry.title)} ({place}): **{one.word}**.\n\n"
    files = sorted({e.by for e in one.evidence if e.by.endswith(".yml")})
    if files:
        yield "".join(f"`./warpbed run {file}` · `./warpbed reproduce {entry.id}`\n" for file in files[:1]) + "\n"
    if entry.id in figures:
        yield f"![{text(entry.title)}]({figures[entry.id].relative_to(folder)})\n\n"
    yield "| part | the thesis | asked | here | outcome | by |\n|---|---|---|---|---|---|\n"
    for e in one.evidence:
        yield "".join(_row(e, entry.says(e.part)))
    for part in one.open_claims:
        yield f"| {part} | {cell(entry.says(part))} | | | not bound yet | |\n"
    for part, reason in entry.left_out.items():
        yield f"| {part} | {cell(entry.says(part))} | | | cannot be compared: {cell(reason)} | |\n"
    for question in entry.open:
        yield "\n".join(["", f"Open in the thesis: {text(question)}", ""])
        varied = "".join(beyond_pages.choices_of(question, beyond, opened))
        yield f"\n{varied}" if varied else ""


def _row(e: Evidence, says: str) -> Iterator[str]:
    word = {"holds": "holds", "contradicted": "does not hold"}.get(e.held, e.held)
    if e.explains:
        word = f"explains: {word}" if e.held == "holds" else f"does not explain: {word}"
    detail = f" ({e.reason})" if e.reason else ""
    seeds = f"; {e.seeds} runs" if e.seeds > 1 else ""
    what = e.says if e.says and e.says != says else ""
    here = " — ".join(part for part in (what if not e.measured or e.by.endswith(".py") else "", e.measured) if part)
    yield f"| {e.part} | {cell(says)} | {cell(e.published)} | {cell(here)}{seeds} | {word}{cell(detail)} | {cell(file_link(e.by))} |\n"


def _counts(entries: Sequence[Judged]) -> Iterator[str]:
    comparable = [one for one in entries if one.entry.comparable != "no"]
    outcomes = [one.word for one in comparable]
    yield f"Of {len(entries)} entries {len(comparable)} can be compared: "
    yield ", ".join(f"{outcomes.count(word)} {word}" for word in dict.fromkeys(sorted(outcomes))) + ".\n"


def _over_all(
    theses: Mapping[str, Catalogue], by_thesis: Mapping[str, Sequence[Judged]], beyond: Sequence[Beyond]
) -> Iterator[str]:
    yield HEAD
    yield "# The theses, reproduced\n\nWhat became of each thesis' tables, figures and claims; [how it is decided](../reproduction.md).\n\n"
    every = [one.word for judged in by_thesis.values() for one in judged if one.entry.comparable != "no"]
    outcomes = list(dict.fromkeys(sorted(every)))
    yield f"| thesis | can be compared | {' | '.join(outcomes)} |\n|---|---|{'---|' * len(outcomes)}\n"
    for name, judged in by_thesis.items():
        mine = [one.word for one in judged if one.entry.comparable != "no"]
        yield f"| [{name}]({name}.md) | {len(mine)} | {' | '.join(str(mine.count(word)) for word in outcomes)} |\n"
    yield f"| all | {len(every)} | {' | '.join(str(every.count(word)) for word in outcomes)} |\n"
    against = [one for judged in by_thesis.values() for one in judged if one.outcome == "contradicts"]
    if against:
        yield "\n## What contradicts\n\n| entry | what | shown by | why |\n|---|---|---|---|\n"
        for one in against:
            shown = few(e.says for e in one.evidence if e.explains and e.held == "holds")
            if not one.explained:
                shown = f"in part: {shown}" if shown else "unexplained"
            yield f"| {entry_link(one.entry.id)} | {cell(one.entry.title)} | {cell(shown)} | {cell(short(one.reason))} |\n"
    by_id = {one.entry.id: one for judged in by_thesis.values() for one in judged}
    yield from learned.section(theses, by_id)
    yield from beyond_pages.summary(beyond, by_id)
