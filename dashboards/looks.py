# SPDX-License-Identifier: Apache-2.0
"""How series are named, listed and drawn: their colours, shades and dashes."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from analysis.palette import ALGORITHMS, SCREEN, shades

MORE = " · "
"""Between an algorithm and what else tells two series apart."""
JOINER = "\ufeff"
"""Nothing to be seen, and behind digits, letters and DASHES in the order of characters, in which Grafana lists series: "2" stands before
"10" where that has more of them before it."""


def in_place(place: str, text: str) -> str:
    """SQL: a text that Grafana lists at a place, from 1 on, among others that differ from there on."""
    return f"repeat('{JOINER}', ({place})::int - 1) || {text}"


def natural(text: str) -> str:
    """SQL: a name whose numbers (of up to four digits) Grafana lists in their order: f2 before f10."""
    for digits in (2, 3, 4):
        text = f"regexp_replace({text}, '(?<![0-9])(?=[0-9]{{{digits}}})', '{JOINER}', 'g')"
    return text


def algorithm_colours(panel: Any) -> Any:
    """An algorithm's series have its colour, in each panel and in the report (analysis.palette)."""
    for number, colour in enumerate(SCREEN):
        names = "|".join(ALGORITHMS[number :: len(SCREEN)])
        fixed = models.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})
        panel = panel.override_by_regexp(f"/^({names})({MORE}.*)?$/", [fixed])
    return panel


SHADES = len(shades(SCREEN[0]))
FLOW_DASHES: tuple[list[int], ...] = ([], [10, 6], [2, 6])
LOOKS = SHADES * len(FLOW_DASHES)
"""Of the flows of one algorithm: so many are told apart, then looks are repeated."""


def flow_looks(panel: Any) -> Any:
    """Flows have their algorithm's colour (`algorithm · flow`, the flow in its place among those of the algorithm): in three shades, then
    dashed, then dotted."""
    panel = algorithm_colours(panel)
    for place in range(1, LOOKS):
        if pattern := FLOW_DASHES[place // SHADES]:
            style = models.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": pattern})
            panel = panel.override_by_regexp(
                f"/^([^{MORE.strip()}]*){MORE}({JOINER}{{{LOOKS}}})*{JOINER}{{{place}}}(?!{JOINER})/", [style]
            )
    for number, colour in enumerate(SCREEN):
        names = "|".join(ALGORITHMS[number :: len(SCREEN)])
        for shade in range(1, SHADES):
            fixed = models.DynamicConfigValue(
                id_val="color", value={"mode": "fixed", "fixedColor": shades(colour)[shade]}
            )
            panel = panel.override_by_regexp(
                f"/^({names}){MORE}({JOINER}{{{SHADES}}})*{JOINER}{{{shade}}}(?!{JOINER})/", [fixed]
            )
    return panel


DASHES = ("", "┄┄ ", "┈┈ ", "╌┈ ")
"""Before what tells the settings of one algorithm apart, since its colour does not: how their lines are drawn."""


def dashed_settings(panel: Any) -> Any:
    """Lines of one algorithm's other settings are dashed or dotted, as their names say."""
    for prefix, pattern in zip(DASHES[1:], ([10, 6], [2, 6], [12, 5, 2, 5]), strict=True):
        style = models.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": pattern})
        panel = panel.override_by_regexp(f"/(^|{MORE}){JOINER}*{prefix}/", [style])
    return panel


def first_seed_listed(panel: Any) -> Any:
    """Runs of one setting look alike, whatever their seeds (`…seed 7`, in its place among the seeds): the legend has the first of them, so
    that it leaves the data most of a chart; the tooltip has each."""
    unlisted = models.DynamicConfigValue(
        id_val="custom.hideFrom", value={"legend": True, "tooltip": False, "viz": False}
    )
    return panel.override_by_regexp(f"/seed {JOINER}/", [unlisted])


def dotted(panel: Any, suffix: str) -> Any:
    """A second quantity of each flow, whose names end so, as dots in the flow's colour."""
    dots = models.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [1, 4]})
    width = models.DynamicConfigValue(id_val="custom.lineWidth", value=2)
    return panel.override_by_regexp(f"/ {suffix}$/", [dots, width])


def dashed_peaks(panel: Any) -> Any:
    """The greatest values of an interval as faint dashes, so that they do not cover its mean."""
    dashes = models.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [3, 5]})
    faint = models.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": "rgba(140, 140, 140, 0.6)"})
    return panel.override_by_regexp("/ max$/", [dashes, faint])
