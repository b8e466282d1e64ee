// SPDX-License-Identifier: GPL-2.0-only
/* Parameters of both kinds of Astart, and when they raise ssthresh, see cc_astart.h */
#include "cc_astart.h"

unsigned int astart_tau_ms __read_mostly = 1000;
CC_PARAM_RANGE(tau_ms_ops, 10, 100000);
module_param_cb(tau_ms, &tau_ms_ops, &astart_tau_ms, 0644);
MODULE_PARM_DESC(tau_ms, "1 / cut-off frequency of the filter, ms, 10-100000 (1000)");

unsigned int astart_init_ssthresh __read_mostly = 32;
CC_PARAM_RANGE(init_ssthresh_ops, 2, 1000000);
module_param_cb(init_ssthresh, &init_ssthresh_ops, &astart_init_ssthresh, 0644);
MODULE_PARM_DESC(init_ssthresh, "first ssthresh, packets, 2-1000000 (32)");

unsigned int astart_each_ack __read_mostly;
CC_PARAM_RANGE(each_ack_ops, 0, 1);
module_param_cb(each_ack, &each_ack_ops, &astart_each_ack, 0644);
MODULE_PARM_DESC(each_ack, "ssthresh is estimated once, when the window has reached the first one (0), or with each ACK until the first loss (1), 0-1 (0)");

void astart_raise(struct tcp_sock *tp, const struct astart_filter *filter,
		  u32 rtt_us, u8 *over)
{
	u8 each = READ_ONCE(astart_each_ack);

	if (!each && tcp_in_slow_start(tp))
		return;
	*over = !each;
	tp->snd_ssthresh = astart_raised(filter, rtt_us, tp->snd_ssthresh);
}
