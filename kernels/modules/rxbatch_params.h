/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * warp_rxbatch's parameters: whose connections, and how much is a batch
 */
#ifndef WARPBED_RXBATCH_PARAMS_H
#define WARPBED_RXBATCH_PARAMS_H

#include <linux/types.h>

/* MODULE_PARM_DESC() says what each is; the first three change at any time */
extern unsigned int warp_batch_bytes;
extern unsigned int warp_hold_ms;
extern unsigned int warp_start_bytes;
extern unsigned int warp_sockets;
extern unsigned int warp_batches;

bool warp_port_listed(u16 port);
bool warp_port_unseen(u16 port);
void warp_params_exit(void);

#endif /* WARPBED_RXBATCH_PARAMS_H */
