# SPDX-License-Identifier: Apache-2.0
"""Grafana as code: one file per dashboard, written as JSON by `python -m dashboards.build`."""
