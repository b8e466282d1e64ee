# SPDX-License-Identifier: Apache-2.0
"""The version of the records, in the Parquet metadata under `warpbed.schema`."""

SCHEMA_VERSION = 2
