# SPDX-License-Identifier: Apache-2.0
"""Mininet topologies, one per file, and the link model they share."""
