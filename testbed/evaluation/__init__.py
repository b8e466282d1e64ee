# SPDX-License-Identifier: Apache-2.0
"""Experiments of RFC 9743's criteria, with an algorithm of the user's choice in the place of the one under test."""
