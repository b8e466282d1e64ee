/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer of kernels/modules/cc_output.c against the owner of its socket, on two CPUs
 *
 * What the kernel does is modelled after kernel/time/hrtimer.c: a queued timer that expires is taken off the queue and marked
 * as running; starting it again puts it on the queue, also while it runs; cancelling fails while it runs; a callback that
 * wants to be restarted is queued unless somebody has done so.
 *
 * refs counts the stage's references (those to the socket come and go with them): one of the owner, one while armed. Checked:
 * nobody touches the stage after the last one is gone, none is given back twice, none is left (then the timer waits for ever,
 * which is an invalid end state), and the timer is not queued when the stage goes.
 *
 * OLD is how it was before: the timer armed itself again without a lock that the owner had.
 */
#define ROUNDS 3

bool armed, closed;		/* of the stage, under lk */
bool queued, running;		/* of the hrtimer */
bool owned, slock;		/* of the socket */
bool lk;
bool freed;
byte refs = 1;

inline lock(l)   { atomic { !l -> l = true } }
inline unlock(l) { l = false }
inline touch()   { assert(!freed) }

inline put()
{
	atomic {
		assert(refs > 0);
		refs--;
		if
		:: refs == 0 -> assert(!queued); freed = true
		:: else
		fi
	}
}

inline arm()
{
	touch();
#ifdef OLD
	if
	:: queued ->
		if
		:: true				/* early enough */
		:: true ->
			atomic {
				if
				:: queued && !running -> queued = false; refs--
				:: else
				fi
			}
			refs++;
			queued = true
		fi
	:: else ->
		refs++;
		queued = true
	fi
#else
	lock(lk);
	if
	:: armed				/* early enough */
	:: true ->
		if
		:: !armed -> refs++
		:: else
		fi;
		armed = true;
		queued = true			/* hrtimer_start() */
	fi;
	unlock(lk)
#endif
}

active proctype owner()
{
	byte n = 0;
	bool cancelled = false;

	do
	:: n < ROUNDS ->
		n++;
		if
		:: lock(slock); owned = true; unlock(slock);	/* a system call */
		   arm();
		   lock(slock); owned = false; unlock(slock)
		:: lock(slock); arm(); unlock(slock)		/* an ACK */
		fi
	:: break
	od;
	lock(slock); owned = true; unlock(slock);
	touch();
	lock(lk);
	closed = true;
	atomic {					/* hrtimer_try_to_cancel() */
		if
#ifdef OLD
		:: queued && !running -> queued = false; cancelled = true
#else
		:: armed && queued && !running -> queued = false; armed = false; cancelled = true
#endif
		:: else
		fi
	}
	unlock(lk);
	if
	:: cancelled -> put()
	:: else
	fi;
	put();
	lock(slock); owned = false; unlock(slock)
}

active proctype timer()
{
	bool again, busy;

	do
	:: atomic { queued -> queued = false; running = true }
		again = false;
		touch();
		lock(slock);
#ifdef OLD
		if
		:: closed
		:: !closed && owned -> arm()
		:: else ->
			if
			:: arm()			/* something waits */
			:: true
			fi
		fi;
		unlock(slock);
		put();
#else
		lock(lk);
		if
		:: queued -> unlock(lk); unlock(slock)
		:: else ->
			busy = !closed && owned;
			armed = busy;
			unlock(lk);
			if
			:: !busy && !closed -> arm()	/* something waits */
			:: true
			fi;
			unlock(slock);
			again = busy;
			if
			:: !busy -> put()
			:: else
			fi
		fi;
#endif
		atomic {
			if
			:: again && !queued -> queued = true
			:: else
			fi;
			running = false
		}
	:: refs == 0 -> break
	od
}
