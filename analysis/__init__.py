# SPDX-License-Identifier: Apache-2.0
"""From records to numbers, verdicts on claims, tables and reports."""
