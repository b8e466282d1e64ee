# SPDX-License-Identifier: Apache-2.0
"""Kinds of hosts that execute runs. docs/hosts.md says what each can do; `registry` names them."""
