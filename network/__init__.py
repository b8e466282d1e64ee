# SPDX-License-Identifier: Apache-2.0
"""The network of an experiment: nodes, links, addresses, routes, and the kernel's words for them."""
