# SPDX-License-Identifier: Apache-2.0
"""What runs on the host of a run: builds the network, starts flows, captures and samplers.

Runs on the distribution's Python with the standard library and Mininet only.
"""
