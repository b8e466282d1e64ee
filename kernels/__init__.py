# SPDX-License-Identifier: Apache-2.0
"""Kernel sources, builds and the executable specifications of the algorithms."""
