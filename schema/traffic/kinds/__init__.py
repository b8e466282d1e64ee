# SPDX-License-Identifier: Apache-2.0
"""The kinds of traffic, one file for each or for those that share one."""

from __future__ import annotations
