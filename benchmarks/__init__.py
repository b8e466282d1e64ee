# SPDX-License-Identifier: Apache-2.0
"""Measurements of Warpbed itself, run by hand; tests run one of them in a quick form."""
