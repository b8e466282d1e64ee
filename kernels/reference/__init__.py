# SPDX-License-Identifier: Apache-2.0
"""The algorithms in plain Python, as their papers state them; see base.py for the interface."""
