// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one call of a congestion control algorithm costs
 *
 * Makes a TCP connection over the loopback interface with the algorithm that the
 * parameter "algorithm" names, and calls the algorithm's operations on its socket
 * in a loop, as tcp_ack() does for an ACK of one packet and as tcp_enter_recovery()
 * does for a loss, with the socket locked.  What the loop itself costs is measured
 * the same way and taken off.  The results are parameters that can be read:
 *
 *   ack_ps	pkts_acked() and cong_avoid() or cong_control(), ps per ACK
 *   later_ps	the same after LOSSES losses: some estimate until the first loss,
 *		others from the history of losses
 *   loss_ps	ssthresh(), ps per loss
 *
 * each the least mean of any of "batches" batches of CALLS calls: whatever else the
 * machine does can only add to one.  The clock has to be a real one.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/sockptr.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

#define CALLS		2000
#define LOSSES		16	/* one every CALLS / 4 ACKs */
#define WINDOW		200	/* packets, of which ... */
#define THRESHOLD	100	/* ... these were slow start */
#define RTT_US		100000

static char *algorithm = "reno";
module_param(algorithm, charp, 0444);
static unsigned int batches = 200;
module_param(batches, uint, 0444);
static unsigned long ack_ps;
module_param(ack_ps, ulong, 0444);
static unsigned long later_ps;
module_param(later_ps, ulong, 0444);
static unsigned long loss_ps;
module_param(loss_ps, ulong, 0444);

enum what { NOTHING, ACK, LOSS };

/* A connection in the middle of congestion avoidance. */
static void prepare(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	icsk->icsk_ca_state = TCP_CA_Open;
	tcp_snd_cwnd_set(tp, WINDOW);
	tp->snd_ssthresh = THRESHOLD;
	tp->snd_cwnd_cnt = 0;
	tp->is_cwnd_limited = 1;
	tp->packets_out = WINDOW;
	tp->max_packets_out = WINDOW;
	tp->srtt_us = RTT_US << 3;
}

/* The next packet is delivered: 500 us after the last one. */
static void advance(struct tcp_sock *tp)
{
	tp->tcp_mstamp += RTT_US / WINDOW;
	tp->delivered++;
	tp->snd_una += tp->mss_cache;
	tp->snd_nxt += tp->mss_cache;
}

static void call_ack(struct sock *sk, unsigned int i)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	struct tcp_sock *tp = tcp_sk(sk);
	s32 rtt_us = RTT_US + (i & 63) * 16;

	if (ops->pkts_acked) {
		struct ack_sample sample = {
			.pkts_acked = 1,
			.rtt_us = rtt_us,
			.in_flight = WINDOW,
		};

		ops->pkts_acked(sk, &sample);
	}
	if (ops->cong_control) {
		struct rate_sample rs = {
			.prior_mstamp = tp->tcp_mstamp - RTT_US,
			.prior_delivered = tp->delivered - WINDOW,
			.delivered = WINDOW,
			.interval_us = RTT_US,
			.rtt_us = rtt_us,
			.acked_sacked = 1,
			.prior_in_flight = WINDOW,
		};

		ops->cong_control(sk, tp->snd_una, 0, &rs);
	} else {
		ops->cong_avoid(sk, tp->snd_una, 1);
	}
}

static void call_loss(struct sock *sk)
{
	u32 ssthresh = inet_csk(sk)->icsk_ca_ops->ssthresh(sk);

	/* what tcp_enter_recovery() and the end of the recovery would do */
	tcp_sk(sk)->snd_ssthresh = ssthresh;
	tcp_snd_cwnd_set(tcp_sk(sk), WINDOW);
}

static u64 batch_ns(struct sock *sk, enum what what)
{
	u64 begun;
	unsigned int i;

	prepare(sk);
	begun = ktime_get_ns();
	for (i = 0; i < CALLS; i++) {
		advance(tcp_sk(sk));
		if (what == ACK)
			call_ack(sk, i);
		else if (what == LOSS)
			call_loss(sk);
		barrier();
	}
	return ktime_get_ns() - begun;
}

static u64 least_ns(struct sock *sk, enum what what)
{
	u64 least = U64_MAX;
	unsigned int i;

	for (i = 0; i < batches; i++)
		least = min(least, batch_ns(sk, what));
	return least;
}

static void lose_some(struct sock *sk)
{
	unsigned int i;

	prepare(sk);
	for (i = 0; i < LOSSES * CALLS / 4; i++) {
		advance(tcp_sk(sk));
		if (i % (CALLS / 4))
			call_ack(sk, i);
		else
			call_loss(sk);
	}
}

static unsigned long per_call_ps(u64 with, u64 without)
{
	return with > without ? div_u64((with - without) * 1000, CALLS) : 0;
}

/* The socket is locked, and gets back what a live connection needs. */
static void measure(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp), ssthresh = tp->snd_ssthresh;
	u32 packets_out = tp->packets_out, delivered = tp->delivered;
	u32 una = tp->snd_una, nxt = tp->snd_nxt, srtt_us = tp->srtt_us;
	u8 state = icsk->icsk_ca_state;
	u64 mstamp = tp->tcp_mstamp;
	u64 empty;

	local_bh_disable();
	empty = least_ns(sk, NOTHING);
	ack_ps = per_call_ps(least_ns(sk, ACK), empty);
	lose_some(sk);
	later_ps = per_call_ps(least_ns(sk, ACK), empty);
	loss_ps = per_call_ps(least_ns(sk, LOSS), empty);
	icsk->icsk_ca_state = state;
	tcp_snd_cwnd_set(tp, cwnd);
	tp->snd_ssthresh = ssthresh;
	tp->packets_out = packets_out;
	tp->delivered = delivered;
	tp->snd_una = una;
	tp->snd_nxt = nxt;
	tp->srtt_us = srtt_us;
	tp->tcp_mstamp = mstamp;
	local_bh_enable();
}

static int use_algorithm(struct socket *sock)
{
	return sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION,
				     KERNEL_SOCKPTR(algorithm),
				     strlen(algorithm));
}

static int connected(struct socket *listener, struct socket **client)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int err;

	err = kernel_bind(listener, (struct sockaddr_unsized *)&addr,
			  sizeof(addr));
	if (!err)
		err = kernel_listen(listener, 1);
	if (!err)
		err = kernel_getsockname(listener, (struct sockaddr *)&addr);
	if (err < 0)
		return err;
	err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
			       client);
	if (err)
		return err;
	err = use_algorithm(*client);
	if (!err)
		err = kernel_connect(*client, (struct sockaddr_unsized *)&addr,
				     sizeof(addr), 0);
	if (err)
		sock_release(*client);
	return err;
}

static int __init cc_cost_init(void)
{
	struct socket *listener, *client;
	int err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
				   IPPROTO_TCP, &listener);

	if (err)
		return err;
	err = connected(listener, &client);
	if (!err) {
		lock_sock(client->sk);
		measure(client->sk);
		release_sock(client->sk);
		sock_release(client);
	}
	sock_release(listener);
	return err;
}

static void __exit cc_cost_exit(void)
{
}

module_init(cc_cost_init);
module_exit(cc_cost_exit);

MODULE_DESCRIPTION("Cost per call of congestion control algorithms");
MODULE_LICENSE("GPL");
