# SPDX-License-Identifier: Apache-2.0
"""A virtual machine per node of the network, cabled with each other."""
