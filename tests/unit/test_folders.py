# SPDX-License-Identifier: Apache-2.0
"""Every folder that people work in explains itself, and the picture of the packages is that of the code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from base import picture
from base.layers import PACKAGES
from base.paths import ROOT

WITHOUT = {"LICENSES", ".ci"}
"""Top-level folders that hold nothing to add to."""
DOCS = ROOT / "docs"


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name]


def test_no_package_lacks_a_readme() -> None:
    files = tracked()
    folders = {Path(file.parts[0]) for file in files if len(file.parts) > 1 and file.parts[0] not in WITHOUT}
    folders |= {file.parent for file in files if file.name == "__init__.py"}
    folders |= {Path(*file.parts[:2]) for file in files if file.parts[0] == "tests" and len(file.parts) > 2}
    assert len(folders) > 30
    assert sorted(str(folder) for folder in folders if not (ROOT / folder / "README.md").is_file()) == []


def test_every_package_readme_says_how_to_add_something() -> None:
    """A heading "# name: purpose", and a sentence on adding or changing."""
    wrong = []
    for package in PACKAGES:
        text = (ROOT / package / "README.md").read_text()
        if not picture.purpose(package) or not re.search(
            r"\*\*(To add|To change|A |Adding)|## (Adding|Changing)", text
        ):
            wrong.append(package)
    assert wrong == []


def test_the_committed_picture_of_the_packages_is_current() -> None:
    assert picture.FILE.read_text() == picture.drawing(), "docs/architecture.svg is stale; run python3 -m base.picture"


def test_every_relative_link_in_the_documentation_leads_somewhere() -> None:
    pages = [ROOT / file for file in tracked() if file.suffix == ".md"]
    assert len(pages) > 50
    dead = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page.read_text()):
            if target and "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_anchor_in_the_documentation_exists() -> None:
    dead = []
    for page in (ROOT / file for file in tracked() if file.suffix == ".md"):
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text()):
            other = page.parent / target if target else page
            if other.suffix == ".md" and other.exists() and anchor not in anchors(other):
                dead.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert dead == []


def test_the_index_of_the_documentation_names_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    pages = {file.name for file in DOCS.glob("*.md")} - {"README.md"}
    assert sorted(page for page in pages if f"({page}" not in index) == []


def test_every_environment_variable_is_documented() -> None:
    """Those of Python, shell, Ansible, Compose and Rust; C's header guards look alike and are none."""
    seen: dict[str, str] = {}
    for file in tracked():
        if file.suffix in {".py", ".yml", ".j2", ".sh", ".rs", ""} and (ROOT / file).is_file():
            text = (ROOT / file).read_text(errors="replace")
            names = re.findall(r"\bWARPBED_[A-Z0-9_]*[A-Z0-9]\b", text)
            old = re.findall(r"\b[W]B_[A-Z]+", text)
            assert old == [], f"{file}: one prefix for all variables, WARPBED_: {old}"
            seen |= {name: str(file) for name in names if not name.endswith("_H")}
    page = (DOCS / "environment.md").read_text()
    assert len(seen) > 20
    assert {name: file for name, file in seen.items() if not re.search(rf"`{name}`", page)} == {}
