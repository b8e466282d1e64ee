# SPDX-License-Identifier: Apache-2.0
"""`./warpbed bundle`: one archive with an experiment's or a thesis' files, results and figures."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from base.errors import UsageError
from testbed.commands.arguments import results
from testbed.reproduction.costs import size

HELP = "write one archive with an experiment's or a thesis' files, results and figures, for others to check"
LICENCE = re.compile(r"[A-Za-z0-9.+-]{1,60}")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", metavar="EXPERIMENT|THESIS", help="experiment file, or a thesis such as kato2012")
    command.add_argument("--out", type=Path, metavar="FILE", help="the archive (default: NAME.zip in this folder)")
    command.add_argument("--captures", action="store_true", help="with captures and raw samples, where runs kept them")
    command.add_argument("--incomplete", action="store_true", help="also where runs are missing or failed")
    command.add_argument(
        "--license", default="CC-BY-4.0", metavar="SPDX", help="of results and figures (default: CC-BY-4.0)"
    )
    results(command)


def main(options: argparse.Namespace) -> int:
    from testbed.bundle.contents import part_of  # which loads what draws
    from testbed.bundle.write import write

    if not LICENCE.fullmatch(options.license):
        raise UsageError(f"--license {options.license!r}: an SPDX identifier such as CC-BY-4.0 or CC0-1.0")
    name, title, files, is_thesis = _asked(options.what)
    parts = []
    for file in files:
        part = part_of(file, options.results.resolve())
        if part.runs and (options.incomplete or is_thesis or not part.missing):
            parts.append(part)
        elif not is_thesis:
            raise UsageError(
                f"{file}: {len(part.runs)} runs are complete and {part.missing} are not; ./warpbed run {file} makes them"
                + ("" if not part.runs else "; --incomplete bundles those that are there")
            )
        if part.missing:
            print(f"{part.file}: {len(part.runs)} runs, {part.missing} more are missing or failed")
    if not parts:
        raise UsageError(
            f"{options.what}: no run of its experiments is there; ./warpbed reproduce {options.what} makes them"
        )
    target = options.out or Path(f"{name}.zip")
    manifest = write(
        target, title or parts[0].prepared.experiment.title, parts, captures=options.captures, licence=options.license
    )
    whole = sum(content.bytes for content in manifest.files.values())
    runs = sum(len(part.runs) for part in parts)
    print(f"{target}: {runs} runs of {len(parts)} experiments, {len(manifest.files)} files, {size(whole)} unpacked")
    return 0


def _asked(what: str) -> tuple[str, str, list[Path], bool]:
    """Name, title, experiment files, and whether it is a thesis."""
    from testbed.reproduction.bindings import read

    if what.endswith((".yml", ".yaml")):
        return Path(what).stem, "", [Path(what)], False
    bindings = read()
    if what not in bindings.theses:
        raise UsageError(f"{what}: neither an experiment file nor a thesis; there are {', '.join(bindings.theses)}")
    files = [bound.path for bound in bindings.experiments if bound.path.parent.name == what]
    return what, f"{what}, reproduced", files, True
