# SPDX-License-Identifier: Apache-2.0
"""The theses' catalogues bound to experiments and models, what their runs cost, and what they came to. docs/reproduction.md explains it."""
