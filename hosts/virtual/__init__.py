# SPDX-License-Identifier: Apache-2.0
"""The virtual host: a User-Mode-Linux guest in virtual time."""
