# SPDX-License-Identifier: Apache-2.0
"""Lab machines: real ones over SSH, a node of the network each (docs/lab.md)."""
