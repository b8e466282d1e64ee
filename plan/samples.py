# SPDX-License-Identifier: Apache-2.0
"""The file format of samples: raw netlink answers with the time and the node they came from.

A file starts with MAGIC. Each record is RECORD (time in ns of CLOCK_REALTIME, index of the node in the plan's
network, length) followed by that many bytes of netlink messages, exactly as the kernel sent them.
"""

from __future__ import annotations

import struct

MAGIC = b"WBSAMP01"
RECORD = struct.Struct("<qHI")
