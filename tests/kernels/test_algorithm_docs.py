# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/algorithms say what the modules say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from base.errors import UsageError
from kernels import algorithm_docs
from schema.names import IN_TREE_CCAS, algorithms
from tests import lab

SOURCES = sorted((lab.ROOT / "kernels/modules").glob("tcp_*.c"))
HEADER = """\
// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zeta
 *
 * The idea.
 *
 * Who 2026:
 *   W = 1		(eq 1)
 * with a_b.
 *
 * Differences from the paper
 *  - One, which
 *    goes on.
 *  - Two.
 */
module_param_cb(alpha, &alpha_ops, &alpha, 0644);
MODULE_PARM_DESC(alpha, "packets to keep, 1-10 (3)");
"""


def test_the_pages_are_up_to_date() -> None:
    stale = [str(file.relative_to(lab.ROOT)) for file in algorithm_docs.stale()]
    assert stale == [], "./warpbed exec python -P -m kernels.algorithm_docs makes them"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_module_says_idea_paper_differences_and_parameters(source: Path) -> None:
    algorithm = algorithm_docs.parse(source)
    assert algorithm.idea and algorithm.paper and algorithm.differences
    assert all(parameter.description.meaning for parameter in algorithm.parameters)
    assert algorithm_docs.test_files(algorithm.module, lab.ROOT), "some test names the algorithm"


def test_the_index_names_every_algorithm_that_an_experiment_may_use() -> None:
    text = algorithm_docs.pages()[lab.ROOT / "docs/algorithms/README.md"]
    assert [name for name in algorithms() if f"`{name}`" not in text] == []
    assert set(algorithm_docs.IN_TREE) == set(IN_TREE_CCAS)
    assert re.search(r"`westwood`.*Westwood\+", text)


def test_what_was_measured_stands_on_the_algorithm_s_page() -> None:
    pages = algorithm_docs.pages()
    kept = sorted((lab.ROOT / "docs/algorithms/measured").glob("*.md"))
    assert kept
    for file in kept:
        licence, *lines = file.read_text().splitlines()
        page = pages[lab.ROOT / f"docs/algorithms/{file.name}"].splitlines()
        assert "SPDX" in licence
        assert [line for line in lines if line and line not in page] == []


def test_prose_equations_and_lists_of_a_header_keep_their_shape(tmp_path: Path) -> None:
    source = tmp_path / "tcp_zeta.c"
    source.write_text(HEADER + '.name\t= "zeta",\n')
    algorithm = algorithm_docs.parse(source)
    text = algorithm_docs.page(algorithm, lab.ROOT)
    assert "| `alpha` | packets to keep | 1 – 10 | 3 |" in text
    assert re.search(r"Who 2026:\n\n```\nW = 1 +\(eq 1\)\n```\n\nwith a\\_b\.", text)
    assert "- One, which\n  goes on.\n- Two." in text


def test_a_header_without_its_parts_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "tcp_zeta.c"
    source.write_text(HEADER.replace("Differences from the paper", "Notes") + '.name\t= "zeta",\n')
    with pytest.raises(UsageError, match=r"tcp_zeta\.c: its header needs"):
        algorithm_docs.parse(source)
