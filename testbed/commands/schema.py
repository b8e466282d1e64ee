# SPDX-License-Identifier: Apache-2.0
"""`./warpbed schema`: print the JSON Schema of experiment files, for editors."""

from __future__ import annotations

import argparse
import json

from base.errors import WarpbedError
from base.paths import ROOT
from schema.model import Experiment

HELP = "print the JSON Schema of experiment files, for editors"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--check", action="store_true", help="fail where docs/experiment.schema.json is out of date")


def main(options: argparse.Namespace) -> int:
    """The JSON Schema; with --check, 1 where the one in docs/ differs."""
    text = json.dumps(Experiment.model_json_schema(by_alias=True), indent=1, sort_keys=True) + "\n"
    file = ROOT / "docs/experiment.schema.json"
    if options.check:
        if file.read_text() != text:
            raise WarpbedError(f"{file} is out of date; ./warpbed schema > docs/experiment.schema.json")
        return 0
    print(text, end="")
    return 0
