# SPDX-License-Identifier: Apache-2.0
"""Rows of the kinds of traffic, one file for each kind or for those that share one: KINDS says kind → Kind."""

from __future__ import annotations
