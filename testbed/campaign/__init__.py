# SPDX-License-Identifier: Apache-2.0
"""Measurement campaigns: the same transfers again and again for days, over the wide area or in virtual time."""
