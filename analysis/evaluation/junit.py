# SPDX-License-Identifier: Apache-2.0
"""An evaluation as JUnit XML: a test case for each claim; what is not decided is skipped, with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from analysis.evaluation.outcomes import Judged


def junit(algorithm: str, found: Sequence[Judged]) -> str:
    """One test suite. Classes are criteria, names what the claims say."""
    suite = Element("testsuite", name=f"warpbed.evaluate.{algorithm}")
    counts = {"tests": 0, "failures": 0, "skipped": 0, "errors": 0}
    for one in found:
        for said in one.said:
            counts["tests"] += 1
            case = SubElement(suite, "testcase", classname=f"evaluate.{one.name}", name=said.says)
            message = f"{said.outcome}: {said.words}" + (f" ({said.reason})" if said.reason else "")
            if said.outcome == "contradicted":
                counts["failures"] += 1
                SubElement(case, "failure", message=message).text = f"RFC 9743, {one.section} ({one.level}): {one.asks}"
            elif said.outcome != "holds":
                counts["skipped"] += 1
                SubElement(case, "skipped", message=message)
    for key, count in counts.items():
        suite.set(key, str(count))
    indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suite, encoding="unicode") + "\n"
