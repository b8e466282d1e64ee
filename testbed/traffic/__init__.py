# SPDX-License-Identifier: Apache-2.0
"""From the kinds of traffic to plans, one file for each kind or for those that share one: COMPILERS says kind → function."""

from __future__ import annotations
