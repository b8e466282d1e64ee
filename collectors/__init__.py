# SPDX-License-Identifier: Apache-2.0
"""From a run's raw files to its records."""
