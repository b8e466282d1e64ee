# SPDX-License-Identifier: Apache-2.0
"""Why a run has no value of a metric."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from analysis.metrics.registry import REGISTRY

SHOWN = 3
"""So many flows are named."""


def why(name: str, sources: Mapping[str, Mapping[str, Any]]) -> str:
    """The record that is missing and how a file asks for it, else what the metric's definition says of having no value.

    name: of a metric or of a part of one
    sources: run.json's, by flow the record that each quantity comes from; empty where a run says nothing of it
    """
    metric = REGISTRY[name.partition(".")[0]]
    for need in metric.needs:
        without = [
            flow for flow, source in sources.items() if str(source.get(need.key, "")).split(",")[0] not in need.sources
        ]
        if need.key and without:
            flows = ", ".join(without[:SHOWN]) + (" …" if len(without) > SHOWN else "")
            return f"needs {need}, and no record has that of {flows}; write {need.remedy}"
        if not need.key or not sources:
            return f"needs {need}; write {need.remedy}"
    sentences = re.split(r"(?<=\.)\s+", metric.description)
    return next((sentence for sentence in sentences if "null" in sentence.lower()), sentences[0])
