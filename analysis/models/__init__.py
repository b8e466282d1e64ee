# SPDX-License-Identifier: Apache-2.0
"""The theses' models as functions with their symbols, and what they decide of the theses' catalogues (checks.REGISTRY)."""

from __future__ import annotations

from analysis.models import (
    afifi2014,
    afifi2014_ns3,
    ho2008,
    ho2008_rules,
    ho2008_shares,
    kato2012,
    kato2012_costs,
    kato2012_shares,
    tokuda2003,
    yu2009,
    yu2009_gaps,
    yu2009_graphs,
    yu2009_ns2,
)
from analysis.models.checks import REGISTRY, Check, deciders

__all__ = [
    "REGISTRY",
    "Check",
    "afifi2014",
    "afifi2014_ns3",
    "deciders",
    "ho2008",
    "ho2008_rules",
    "ho2008_shares",
    "kato2012",
    "kato2012_costs",
    "kato2012_shares",
    "tokuda2003",
    "yu2009",
    "yu2009_gaps",
    "yu2009_graphs",
    "yu2009_ns2",
]
