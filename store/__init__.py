# SPDX-License-Identifier: Apache-2.0
"""The store: every run's records in TimescaleDB, and the same tables over the Parquet files where no server runs.

docs/store.md has the tables, the roles and the commands. The files are the truth: the database can be made again from
them at any time.
"""
