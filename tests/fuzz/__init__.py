# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of the files that come from others."""
