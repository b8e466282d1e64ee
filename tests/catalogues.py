# SPDX-License-Identifier: Apache-2.0
"""A catalogue of a thesis with one entry, for tests."""

from __future__ import annotations


def catalogue(published: str) -> str:
    """published: what the thesis prints of its one figure, in the words of a catalogue"""
    return f"""\
# SPDX-License-Identifier: Apache-2.0
catalogue: t2000
thesis: A thesis
entries:
  - id: t2000-fig1
    title: A figure
    where: {{section: '1', page: '1'}}
    kind: figure
    comparable: 'yes'
    published: {published}
    cost: {{virtual_s: 1, mbit_s: 1, runs: 1, gbit: 0.001}}
"""
