# SPDX-License-Identifier: Apache-2.0
"""The local host: Mininet in real time on this machine's own kernel."""
