# SPDX-License-Identifier: Apache-2.0
"""Warpbed from Python: run or load an experiment, and read what it gave.

    import warpbed

    experiment = warpbed.run("experiments/quickstart.yml", only="buffer=50p", seed=1)
    experiment.metrics().pandas()
    for run in experiment.runs:
        print(run.params, run.verdict, run.metrics["utilization"])
        windows = run.records("sockets").polars()
    experiment.claims().pandas()
    experiment.sweep("utilization", "queue_mean_packets")     # an xarray.Dataset
    experiment.figures()["cwnd"]                              # as in the report

Errors are WarpbedError; UsageError where a name, value or file cannot be used. docs/python.md has all of it.
"""

from warpbed import _place  # first: it makes the packages importable that the others use
from warpbed._place import checkout
from warpbed.base_names import VERSION, UsageError, WarpbedError
from warpbed.drawing import Drawing
from warpbed.experiment import Experiment, load
from warpbed.run import Run
from warpbed.starting import command, reproduce, run
from warpbed.table import Table

__version__ = VERSION
del _place, VERSION

__all__ = [
    "Drawing",
    "Experiment",
    "Run",
    "Table",
    "UsageError",
    "WarpbedError",
    "__version__",
    "checkout",
    "command",
    "load",
    "reproduce",
    "run",
]
