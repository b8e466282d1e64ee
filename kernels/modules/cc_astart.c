// SPDX-License-Identifier: GPL-2.0-only
/* Parameters of both kinds of Astart, see cc_astart.h */
#include "cc_astart.h"

unsigned int astart_tau_ms __read_mostly = 1000;
CC_PARAM_RANGE(tau_ms_ops, 10, 100000);
module_param_cb(tau_ms, &tau_ms_ops, &astart_tau_ms, 0644);
MODULE_PARM_DESC(tau_ms, "1 / cut-off frequency of the filter, ms, 10-100000 (1000)");

unsigned int astart_init_ssthresh __read_mostly = 32;
CC_PARAM_RANGE(init_ssthresh_ops, 2, 1000000);
module_param_cb(init_ssthresh, &init_ssthresh_ops, &astart_init_ssthresh, 0644);
MODULE_PARM_DESC(init_ssthresh, "first ssthresh, packets, 2-1000000 (32)");
