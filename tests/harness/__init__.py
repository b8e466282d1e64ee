# SPDX-License-Identifier: Apache-2.0
"""Run a kernel module in a guest, trace its hooks, and hold it against its executable specification."""
