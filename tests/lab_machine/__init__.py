# SPDX-License-Identifier: Apache-2.0
"""A lab machine for tests: a Debian with its own kernel, boot loader and disk, in a QEMU with an emulated CPU."""
