# SPDX-License-Identifier: Apache-2.0
"""Runs on many machines, by Dask: a task is a run."""
