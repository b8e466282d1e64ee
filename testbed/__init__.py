# SPDX-License-Identifier: Apache-2.0
"""Experiment files, planning and execution of runs."""
