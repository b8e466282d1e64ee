# SPDX-License-Identifier: Apache-2.0
"""The programs of the kinds of traffic that iperf3 does not make: one small process per entry, side and node.

Each takes a `TrafficPlan`, does what it says from the run's start on, and gives its result as plain data. A process
serves all connections of its entry, sleeps on exact timers, and ends when its control file does.
"""
