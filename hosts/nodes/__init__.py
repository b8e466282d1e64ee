# SPDX-License-Identifier: Apache-2.0
"""Networks whose nodes are machines, one each: what the kinds `cabled` and `lab` have in common."""
