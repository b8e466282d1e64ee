# SPDX-License-Identifier: Apache-2.0
"""Which commit of a history of modules a claim no longer holds after."""
