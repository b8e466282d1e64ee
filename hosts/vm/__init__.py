# SPDX-License-Identifier: Apache-2.0
"""Virtual machines as hosts: QEMU guests with the project's own kernel and a root image of Debian packages."""
