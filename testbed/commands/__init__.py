# SPDX-License-Identifier: Apache-2.0
"""The commands of `./warpbed`, one per file: HELP, `arguments(parser)` and `main(options) -> exit code`.

A new command is a new file here and a line in testbed/cli.py, which has its name.
"""
