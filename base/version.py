# SPDX-License-Identifier: Apache-2.0
"""The version of Warpbed; CHANGELOG.md, CITATION.cff and the packet collector carry the same (a test compares them)."""

VERSION = "0.1.0"
