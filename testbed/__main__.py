# SPDX-License-Identifier: Apache-2.0
"""`./warpbed COMMAND`: see testbed.cli."""

import sys

from testbed.cli import main

if __name__ == "__main__":
    sys.exit(main())
