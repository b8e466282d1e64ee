# SPDX-License-Identifier: Apache-2.0
"""What an evaluation came to, as one page, as JSON and as a table over algorithms."""
