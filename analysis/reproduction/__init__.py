# SPDX-License-Identifier: Apache-2.0
"""What became of a thesis' results: outcomes of entries, and the pages that show them."""
