# SPDX-License-Identifier: Apache-2.0
"""Bundles: an experiment's files and results in one archive, which anybody can check and run again."""
