# SPDX-License-Identifier: Apache-2.0
"""What a guest with a user land of its own starts with: mount the checkout, which lies on the host, and become a program of it.

start.py PROGRAM [ARGUMENT ...]      PROGRAM: relative to the checkout; WARPBED_SOURCE names the checkout on the host
"""

import ctypes
import os
import runpy
import sys

CHECKOUT = "/warpbed/checkout"
MS_RDONLY = 1

if __name__ == "__main__":
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"hostfs", CHECKOUT.encode(), b"hostfs", MS_RDONLY, os.environ["WARPBED_SOURCE"].encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), os.environ["WARPBED_SOURCE"])
    del sys.argv[0]
    runpy.run_path(f"{CHECKOUT}/{sys.argv[0]}", run_name="__main__")
