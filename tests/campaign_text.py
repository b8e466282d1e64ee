# SPDX-License-Identifier: Apache-2.0
"""The text of the small campaign that tests of campaigns without hosts have."""

from __future__ import annotations


def campaign(receivers: str = "{b: {}}", **more: str) -> str:
    """One size from a to the receivers. more: keys of the file with their values in YAML"""
    head = {"warpbed": "1", "campaign": "demo", "title": "One size", "sender": "a", "receivers": receivers}
    keys = {**head, "algorithms": "[reno]", "sizes": "[1MB]", **more}
    return "".join(f"{key}: {value}\n" for key, value in keys.items())
