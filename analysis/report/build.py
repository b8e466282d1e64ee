# SPDX-License-Identifier: Apache-2.0
"""Put the page together: template, style, script and data in one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from analysis.report import page
from analysis.results import FIGURES
from base.files import replace_text

HERE = Path(__file__).parent
# In the order in which they are joined; each is one part of the page's behaviour.
SCRIPTS = (
    "dom",
    "scale",
    "chart",
    "selection",
    "export",
    "timeline",
    "distribution",
    "sweep",
    "shares",
    "gaps",
    "dashboards",
    "main",
)


def build(folder: Path, names: Sequence[str] | None = None, asked: page.Written | None = None) -> str:
    """The report of results/<experiment> as HTML; `names` and `asked` as for `write_report`."""
    return _render(page.view(folder, names, asked), [])


def templates(folder: Path) -> Environment:
    """A folder's templates: every word escaped, a name that is not there an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render(view: page.View, figures: Sequence[str]) -> str:
    style = (HERE / "report.css").read_text(encoding="utf-8")
    parts = [(HERE / "js" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    return (
        templates(HERE)
        .get_template("template.html.j2")
        .render(
            view=view,
            figures=figures,
            style=Markup(style),  # noqa: S704 (this package's own file)
            script=Markup(script),  # noqa: S704 (this package's own files)
            data=Markup(embed(view.data)),  # noqa: S704 (embed escapes what could end the element)
            style_hash=content_hash(style),
            script_hash=content_hash(script),
        )
    )


def write_report(
    folder: Path,
    output: Path | None = None,
    names: Sequence[str] | None = None,
    asked: page.Written | None = None,
    *,
    figures: bool = False,
) -> Path:
    """Write the report of results/<experiment> and return its path; it appears by rename, whole or not at all.

    names: the runs of the experiment file's sweep in their order; by default all that the folder holds
    asked: the experiment file as it is now, whose words and claims count; by default what the first run recorded
    figures: also draw the figures into figures/ beside the report, as SVG and PDF
    """
    target = output or folder / "report.html"
    view = page.view(folder, names, asked)
    drawn = []
    if figures:
        # imported here: Matplotlib takes longer to load than most commands take
        from analysis.report.static import write_figures

        drawn = write_figures(view.data, target.parent / FIGURES)
    html = _render(view, [str(file.relative_to(target.parent)) for file in drawn])
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_text(target, html)
    return target


def embed(data: Any) -> str:
    """JSON that cannot end the script element that holds it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def content_hash(text: str) -> str:
    """What a content security policy calls a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
