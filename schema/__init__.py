# SPDX-License-Identifier: Apache-2.0
"""Experiment files: their schema, and reading them with errors that say where."""
