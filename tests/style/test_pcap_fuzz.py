# SPDX-License-Identifier: Apache-2.0
"""The fuzzers of the packet collector are built, know their corpus, and find nothing in a short run."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors import fuzz
from tests import pcap_corpus

SECONDS = 15
LEAST_EDGES = 500
"""Of the collector itself there are over a thousand; far fewer mean that it was not instrumented."""


def test_the_corpus_holds_every_container_and_conversation() -> None:
    """`python -m tests.pcap_corpus` writes it again."""
    for name, data in pcap_corpus.seeds():
        assert (pcap_corpus.CORPUS / name).read_bytes() == data, name


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_a_short_run_finds_nothing(target: str, tmp_path: Path) -> None:
    outcome = fuzz.run(target, SECONDS, tmp_path)
    assert outcome.finding is None, outcome.words[-4000:]
    known = sum(1 for _ in (pcap_corpus.CORPUS / target).iterdir())
    assert outcome.executions > known
    assert outcome.edges > LEAST_EDGES
