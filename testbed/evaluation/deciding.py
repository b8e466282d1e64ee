# SPDX-License-Identifier: Apache-2.0
"""What the runs that are there say of an algorithm, criterion by criterion."""

from __future__ import annotations

import os
from pathlib import Path

from analysis.evaluation import outcomes
from analysis.evaluation.outcomes import Judged
from analysis.results import load_experiment
from testbed.commands.prepared import answered_ids
from testbed.evaluation.derive import UNDER_TEST, Evaluation
from testbed.experiments import prepare
from testbed.outcomes import outcomes as outcomes_of
from testbed.results import Results


def decided(evaluation: Evaluation, file: Path, results: Path, page_folder: Path) -> Judged:
    """One criterion, from the derived file and the runs below `results`.

    page_folder: where the page will be, to which the link to the runs' own report is relative
    """
    asked = prepare(file)
    experiment, criterion = asked.experiment, evaluation.criterion
    place = Results(results, experiment.name)
    names = answered_ids(asked, experiment.host, place)
    runs = load_experiment(place.folder, names) if place.folder.is_dir() else ()
    done = [run for run in runs if run.complete]
    claims_checked = outcomes_of(runs, asked, place.folder).claims if done else ()
    tested = experiment.sweep.factorial[UNDER_TEST][-1] if experiment.sweep is not None else ""
    # runs of the others alone say nothing of the one under test
    is_there = any(run.params.get(UNDER_TEST) == tested for run in done)
    report = place.folder / "report.html"
    return Judged(
        name=evaluation.name,
        title=experiment.title,
        question=experiment.question,
        section=criterion.section,
        level=criterion.level,
        asks=criterion.asks,
        outcome=outcomes.outcome_of([finding.outcome for finding in claims_checked]) if is_there else outcomes.NOT_RUN,
        said=outcomes.said(claims_checked) if is_there else (),
        measured=outcomes.measured(runs, experiment.metrics, UNDER_TEST) if done else (),
        verdicts=outcomes.verdicts(runs),
        document=criterion.document,
        report=os.path.relpath(report, page_folder) if report.exists() else "",
    )


def not_possible(evaluation: Evaluation, why: str) -> Judged:
    """One criterion that the kernel cannot have."""
    data, criterion = evaluation.data, evaluation.criterion
    return Judged(
        name=evaluation.name,
        title=data["title"],
        question=data["question"],
        section=criterion.section,
        level=criterion.level,
        asks=criterion.asks,
        outcome=outcomes.NOT_RUN,
        said=(),
        measured=(),
        verdicts={},
        document=criterion.document,
        why_not=why,
    )
