# SPDX-License-Identifier: Apache-2.0
"""An evaluation's file for one algorithm: its name in the place of the one under test, and less of it for `--quick`.

The algorithm under test is the last value of the sweep's parameter `cca`; in claims and guards it stands where `cca` has that
value, and as the last part of a metric's name. Runs of the others are the same for every algorithm, and done once.
"""

from __future__ import annotations

import copy
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from base.errors import Problem, SpecError, UsageError
from base.files import replace_text
from base.nearest import nearest
from base.paths import ROOT
from kernels import series
from schema.load import load
from schema.model import Criterion

FOLDER = ROOT / "experiments/evaluate"
UNDER_TEST = "cca"
MEASURES = {"cubic": "CUBIC", "reno": "Reno"}
"""What algorithms are compared with, and what claims call them."""
QUICK_SEEDS = [1, 2]
"""Two seeds tell what is far from a bound, and what no seed changes."""


@dataclass(frozen=True)
class Evaluation:
    """One file of experiments/evaluate. name: of the file, without its ending."""

    name: str
    path: Path
    criterion: Criterion
    data: dict[str, Any]


def evaluations(folder: Path = FOLDER) -> list[Evaluation]:
    """All files of the folder in the order of their names.

    Raises SpecError for one that has no criterion, or no parameter `cca` with several values.
    """
    by_file = []
    for path in sorted(folder.glob("*.yml")):
        experiment, document = load(path)
        if experiment.criterion is None:
            raise SpecError(
                [Problem(str(path), 1, "criterion", "an evaluation says what it evaluates; add section, level, asks")]
            )
        data = document.data
        assert isinstance(data, dict)
        values = data.get("sweep", {}).get("factorial", {}).get(UNDER_TEST, [])
        if len(values) < 2:
            message = f"an evaluation sweeps {UNDER_TEST} over at least two algorithms, of which the last is under test"
            raise SpecError([Problem(str(path), document.line(("sweep",)), f"sweep.factorial.{UNDER_TEST}", message)])
        by_file.append(Evaluation(path.stem, path, experiment.criterion, data))
    return by_file


def chosen(only: str, all_of_them: list[Evaluation]) -> list[Evaluation]:
    """Those that a comma-separated list names; all for none. Raises UsageError for an unknown name."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    known = {one.name: one for one in all_of_them}
    for name in names:
        if name not in known:
            raise UsageError(f"--only {name}: there is no such evaluation; {nearest(name, known)}")
    return [one for one in all_of_them if not names or one.name in names]


def derived(evaluation: Evaluation, algorithm: str, quick: bool, kernel: str = series.DEFAULT) -> dict[str, Any]:
    """The file's data for an algorithm.

    quick: of every other parameter the first value, and two seeds
    """
    data = copy.deepcopy(evaluation.data)
    if kernel != series.DEFAULT:  # or else the file says nothing of it, so that runs that are there stay the same
        data["kernel"] = kernel
    factorial = data["sweep"]["factorial"]
    *others, before = factorial[UNDER_TEST]
    factorial[UNDER_TEST] = [*(name for name in others if name != algorithm), algorithm]
    for listed in ("claims", "guards"):
        data[listed] = [_with_another_measure(_renamed(entry, before, algorithm)) for entry in data.get(listed, [])]
    data["metrics"] = [_metric(name, before, algorithm) for name in data.get("metrics", [])]
    if quick:
        for name, values in factorial.items():
            if name != UNDER_TEST:
                factorial[name] = values[:1]
        data.pop("repeats", None)
        data["seeds"] = list(QUICK_SEEDS)
        data["repeats"] = len(QUICK_SEEDS)
    return data


def _renamed(value: Any, before: str, algorithm: str) -> Any:
    if isinstance(value, dict):
        return {
            key: algorithm
            if key == UNDER_TEST and part == before
            else _metric(part, before, algorithm)
            if key == "metric" and isinstance(part, str)
            else _renamed(part, before, algorithm)
            for key, part in value.items()
        }
    return [_renamed(part, before, algorithm) for part in value] if isinstance(value, list) else value


def _with_another_measure(claim: Any) -> Any:
    """A claim that would compare an algorithm with itself compares it with the other one of CUBIC and Reno."""
    for relation in claim.values():
        if not isinstance(relation, dict) or not {"first", "second"} <= set(relation):
            continue
        same = relation["first"].get(UNDER_TEST)
        if same is None or same != relation["second"].get(UNDER_TEST):
            continue
        other = next(name for name in MEASURES if name != same)
        relation["second"][UNDER_TEST] = other
        before, name, after = claim.get("says", "").rpartition(MEASURES.get(same, same))
        claim["says"] = f"{before}{MEASURES[other] if name else ''}{after}"  # what it is compared with stands last
    return claim


def _metric(name: str, before: str, algorithm: str) -> str:
    """A metric of one algorithm's flows, such as algorithm_goodput_mbps.bbr."""
    return f"{name.removesuffix(before)}{algorithm}" if name.endswith(f".{before}") else name


def of_kernel(name: str, kernel: str) -> str:
    """A folder's name for a kernel; that of the default one is the name itself."""
    return name if kernel == series.DEFAULT else f"{name}-{kernel}"


def written(evaluation: Evaluation, algorithm: str, quick: bool, folder: Path, kernel: str = series.DEFAULT) -> Path:
    """The derived file below `folder`, for the ordinary commands; written only where it would change."""
    out = io.StringIO()
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 4096
    yaml.dump(derived(evaluation, algorithm, quick, kernel), out)
    path = folder / of_kernel("quick" if quick else "whole", kernel) / algorithm / f"{evaluation.name}.yml"
    head = f"# SPDX-License-Identifier: Apache-2.0\n# Made from experiments/evaluate/{evaluation.name}.yml for {algorithm}.\n"
    text = head + out.getvalue()
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)  # a link in its place, in somebody else's folder, is not followed
    return path
