# SPDX-License-Identifier: Apache-2.0
"""The version of the records, in the Parquet metadata under `warpbed.schema`."""

SCHEMA_VERSION = 3
READ_VERSIONS = (2, 3)
"""Those that are read: in the older, files with a row per ACK hold `t_s` as well."""
