# SPDX-License-Identifier: Apache-2.0
"""An experiment's results: runs, metrics, claims, sweep, figures, report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import cells
from analysis.metrics import REGISTRY
from analysis.results import load_experiment, parameters, show
from base.errors import UsageError
from testbed.commands.prepared import as_written, results_of
from testbed.experiments import Prepared, prepare
from testbed.outcome_rows import rows_of
from testbed.outcomes import outcomes
from warpbed import _place
from warpbed.drawing import Drawing, drawings
from warpbed.run import Run, joined
from warpbed.sweep import dataset
from warpbed.table import Table

if TYPE_CHECKING:
    import xarray

RESULTS = "results"


@dataclass(frozen=True, repr=False)
class Experiment:
    """An experiment's results as they were when they were loaded; `load` again after further runs.

    folder: its results; file: the experiment file, where it was loaded by one
    runs: those that have a folder, failed ones too, in the order of the sweep; missing: ids of those without one
    """

    folder: Path
    runs: tuple[Run, ...]
    missing: tuple[str, ...] = ()
    file: Path | None = None

    def __repr__(self) -> str:
        swept = f" over {', '.join(self.parameters)}" if self.parameters else ""
        missing = f", {len(self.missing)} missing" if self.missing else ""
        return f"<Experiment {self.name}: {len(self)} runs{swept}{missing}>"

    @property
    def name(self) -> str:
        return self.folder.name

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The sweep's parameters."""
        return parameters([run.found for run in self.runs])

    def where(self, **params: Any) -> tuple[Run, ...]:
        """The runs with these values of parameters or of `seed`: experiment.where(cca="medley", buffer="50p", seed=1).

        Raises UsageError for a name that is no parameter.
        """
        for name in params:
            if name != "seed" and name not in self.parameters:
                raise UsageError(
                    f"{self.name}: no parameter {name!r}; there are {', '.join((*self.parameters, 'seed'))}"
                )
        wanted = {name: show(value) for name, value in params.items()}
        return tuple(
            run
            for run in self.runs
            if all(
                show(run.seed if name == "seed" else run.params.get(name)) == value for name, value in wanted.items()
            )
        )

    def metrics(self) -> Table:
        """A row per run: run, seed, `param.<name>`, verdict, and each metric that is one number (`units` has their units)."""
        names, scalars = self.parameters, [one.name for one in REGISTRY.values() if not one.keyed]
        rows = [
            {"run": run.id, "seed": run.seed, **_params(run, names), "verdict": run.verdict,
             **{name: run.metrics.get(name) for name in scalars}}
            for run in self.runs
        ]  # fmt: skip
        return Table.of(rows)

    @property
    def units(self) -> Mapping[str, str]:
        """The unit of each metric; "1" for a ratio or a count."""
        return {one.name: one.unit for one in REGISTRY.values()}

    def flows(self) -> Table:
        """A row per run and flow: run, seed, `param.<name>`, and the flow's metrics."""
        names = self.parameters
        return Table.of(
            [
                {"run": run.id, "seed": run.seed, **_params(run, names), **flow}
                for run in self.runs
                for flow in run.flows
            ]
        )

    def records(self, name: str, columns: Sequence[str] | None = None) -> Table:
        """One of the records of all complete runs that have it: the columns run, seed, `param.<name>`, then the record's."""
        return joined([run for run in self.runs if run.complete and name in run.record_names], name, columns)

    def cells(self) -> Table:
        """A row per combination of the sweep and metric: n, mean, 95 % intervals by Student's t and by bootstrap (docs/numbers.md)."""
        return Table.of([_flat(row) for row in cells.rows([run.found for run in self.runs])])

    def paired(self, parameter: str, before: Any, after: Any) -> Table:
        """What changes from one value of a parameter to another at equal seeds and equal other parameters, per metric.

        Raises WarpbedError for a parameter or value that no run has.
        """
        rows = cells.paired_rows([run.found for run in self.runs], parameter, show(before), show(after))
        return Table.of([_flat(row) for row in rows])

    def claims(self) -> Table:
        """The paper's claims and numbers and the file's guards against these runs: kind, source, where, asked, measured, interval, outcome.

        Raises UsageError where the experiment was loaded without its file, which has them.
        """
        judged = outcomes([run.found for run in self.runs], self._prepared("claims"), self.folder)
        return Table.of([_flat(row, "where") for row in rows_of(judged)], CLAIM_COLUMNS)

    def sweep(self, *metrics: str) -> xarray.Dataset:
        """Metrics over the sweep as a dataset: a dimension per parameter and one for the seed.

        Names may be parts of a metric (flows.f1.goodput_mbps); none means every metric that is one number. A combination without
        a run whose numbers count is NaN. Coordinates are the parameters as text; `<name>_value` has their numbers in base units
        where all have one. Raises UsageError where xarray is not installed, WarpbedError for a name that is no metric's.
        """
        return dataset([run.found for run in self.runs], metrics)

    def figures(self) -> dict[str, Drawing]:
        """The report's figures by name: cwnd, rtt, queue, throughput, …, sweep-<metric>. They read all runs' records."""
        return drawings([run.found for run in self.runs])

    def report(self, *, figures: bool = False) -> Path:
        """Write report.html (figures: and its figures as SVG and PDF) into the results folder; returns its path."""
        from analysis.report import write_report  # which loads the templates

        asked = as_written(prepare(self.file)) if self.file else None
        return write_report(self.folder, names=[run.id for run in self.runs], asked=asked, figures=figures)

    def _prepared(self, what: str) -> Prepared:
        if self.file is None:
            raise UsageError(f"{self.name}: {what} stand in the experiment file; load the experiment by its file")
        return prepare(self.file)


CLAIM_COLUMNS = (
    "kind",
    "source",
    "metric",
    "unit",
    "where",
    "asked",
    "measured",
    "low",
    "high",
    "runs",
    "outcome",
    "reason",
)


def load(experiment: str | Path, *, results: str | Path | None = None, host: str | None = None) -> Experiment:
    """The results of an experiment.

    experiment: its file (then what the file asks for now counts), its name, or its folder of results
    results: where results are, by default `results/` in the checkout; host: the kind of host, by default the file's

    Raises UsageError where there are none.
    """
    path = Path(experiment)
    if path.suffix not in (".yml", ".yaml") and path.is_dir():
        return _loaded(path.resolve(), None, None)
    base = Path(results) if results is not None else _place.checkout() / RESULTS
    folder, names = results_of(Namespace(experiment=_file(path), results=base.resolve(), host=host))
    return _loaded(folder, names, _file(path).resolve() if names is not None else None)


def _file(path: Path) -> Path:
    """An experiment's file: as named, or of that name in the checkout."""
    if path.suffix in (".yml", ".yaml") and not path.is_absolute() and not path.exists():
        inside = _place.checkout() / path
        return inside if inside.exists() else path
    return path


def _loaded(folder: Path, names: Sequence[str] | None, file: Path | None) -> Experiment:
    runs = load_experiment(folder, names)
    missing = tuple(run.run for run in runs if run.status == "missing")
    return Experiment(folder, tuple(Run(run) for run in runs if run.status != "missing"), missing, file)


def _params(run: Run, names: Sequence[str]) -> dict[str, Any]:
    return {f"param.{name}": show(run.params[name]) if name in run.params else None for name in names}


def _flat(row: Mapping[str, Any], key: str = "params") -> dict[str, Any]:
    """A row with its parameters as columns of their own (`params`), or as one text (`where`)."""
    if key == "params":
        rest = {name: value for name, value in row.items() if name != key}
        return {**{f"param.{name}": show(value) for name, value in row[key].items()}, **rest}
    where = row[key]
    text = ", ".join(f"{name}={show(value)}" for name, value in where.items()) if isinstance(where, Mapping) else where
    return {**row, key: text, "asked": show(row["asked"]) if row["asked"] is not None else None}
