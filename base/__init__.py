# SPDX-License-Identifier: Apache-2.0
"""What every package may use: quantities, errors, paths, the cache. The standard library only."""
