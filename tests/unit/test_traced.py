# SPDX-License-Identifier: Apache-2.0
"""What function_graph says of a hook's calls is read as it is: whole calls, with what they call, and none that was interrupted."""

from __future__ import annotations

from tests.lab_machine.traced import durations_us

TRACE = """\
# tracer: function_graph
#
#     DURATION                  FUNCTION CALLS
#     |   |                     |   |   |   |
  0.720 us    |  tcp_reno_ssthresh();
              |  cubictcp_cong_avoid [tcp_cubic]() {
  0.676 us    |    tcp_cong_avoid_ai();
  2.047 us    |  } /* cubictcp_cong_avoid [tcp_cubic] */
              |  tcp_reno_cong_avoid() {
  0.668 us    |    irq_enter_rcu();
  0.670 us    |    idle_cpu();
+ 14.380 us   |  } /* tcp_reno_cong_avoid */
              |  tcp_reno_cong_avoid() {
              |    tcp_slow_start() {
  0.700 us    |      tcp_reno_ssthresh();
  1.900 us    |    }
! 103.500 us  |  } /* tcp_reno_cong_avoid */
  0.712 us    |  cubictcp_state [tcp_cubic]();
"""


def test_whole_calls_are_read_and_interrupted_ones_left_out() -> None:
    assert durations_us(TRACE) == {
        "tcp_reno_ssthresh": [0.720],
        "cubictcp_cong_avoid": [2.047],
        "tcp_reno_cong_avoid": [103.5],
        "cubictcp_state": [0.712],
    }
