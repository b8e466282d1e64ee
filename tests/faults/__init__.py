# SPDX-License-Identifier: Apache-2.0
"""Every call to the kernel may fail: a run is repeated with the n-th one failing, for n = 1, 2, 3 …, in SQLite's manner."""
