# SPDX-License-Identifier: Apache-2.0
"""What differs between two runs: their inputs, the first packet, the first record."""
