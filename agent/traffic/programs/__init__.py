# SPDX-License-Identifier: Apache-2.0
"""The programs of the traffic's kinds, one file for each or for those that share one: PROGRAMS says (kind, side) → program.

A program gets its plan, the nodes' addresses and the control line, and returns its results as plain data.
"""

from __future__ import annotations
