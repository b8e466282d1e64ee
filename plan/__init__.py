# SPDX-License-Identifier: Apache-2.0
"""The contract between who plans a run and the host that executes it. The standard library only."""
