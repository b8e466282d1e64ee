// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parameter of the loss recovery that modules share, see cc_recovery.h
 */
#include "cc_common.h"

unsigned int cc_classic_retransmits __read_mostly;
CC_PARAM_RANGE(classic_retransmits_ops, 0, 100);
module_param_cb(classic_retransmits, &classic_retransmits_ops,
		&cc_classic_retransmits, 0644);
MODULE_PARM_DESC(classic_retransmits, "loss recovery: the kernel's (0), or classic Reno's with at most so many fast retransmits in a window, 0-100 (0)");
