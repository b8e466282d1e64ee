# SPDX-License-Identifier: Apache-2.0
# Packet pairs on Yu 2009 Fig 4-33's path in ns-2, as SPM (section 4.5) sends them while its window grows from 2 to 32 packets.
#
#     ns ns2_pairs.tcl MBIT_PER_S SEED FIRST_SSTHRESH OVERHEAD_S UNTIL_S STARTS
#
# The cross traffic is that of ns2_parking_lot.tcl, which is read as it is. From UNTIL_S on a start is made every 45 s: a pair back to back, whose
# output gap is y0; a round trip later 2 pairs, then 4, then 8, evenly over a round trip each, with input gaps y0, 1.5 y0, 2 y0 and 4 y0 in turn.
# A start prints 16 numbers as it ends: the round-trip time and y0, s, and the 14 output gaps, s, -1 for a pair of which a packet was lost.
# One that has lost its first pair prints nothing. The last number is what that script prints. Packets of 1040 bytes, as data, go one way; their ACKs would find an idle way back.

lassign $argv rate seed first overhead until starts
set every 45.0
set times {1.0 1.5 2.0 4.0}
set begins $until
set argv [list $rate $seed $first $overhead [expr {$begins + $every * $starts}]]

Agent/MessagePassing set packetSize_ 1040
Class Arrivals -superclass Agent/MessagePassing
# Called for each packet that arrives; its last argument is what was sent.
Arrivals instproc recv {args} {
    arrived {*}[split [lindex $args end] ,]
}

proc arrived {start pair which} {
    global ns at out began
    if {$which == 0} {
        set at($start,$pair) [$ns now]
    } elseif {[info exists at($start,$pair)]} {
        set out($start,$pair) [expr {[$ns now] - $at($start,$pair)}]
        if {$pair == 0} {
            further $start [expr {$at($start,0) - $began($start) + [way_back]}] $out($start,0)
        }
    }
}

# Time of an ACK of 40 bytes over the four slow links and the two of the ends, s
proc way_back {} {
    global rate
    return [expr {4 * (0.05 + 320 / (1e6 * $rate)) + 2 * (0.01 + 320 / 50e6)}]
}

# Send the pairs after the first, and print what has come of them.
proc further {start rtt y0} {
    global ns began times
    set n 0
    for {set round 1} {$round <= 3} {incr round} {
        set pairs [expr {1 << $round}]
        for {set i 0} {$i < $pairs} {incr i} {
            set when [expr {$began($start) + $rtt * ($round + double($i) / $pairs)}]
            set gap [expr {$y0 * [lindex $times [expr {$n % 4}]]}]
            incr n
            $ns at $when "send_packet $start $n 0"
            $ns at [expr {$when + $gap}] "send_packet $start $n 1"
        }
    }
    $ns at [expr {$began($start) + 15}] "told $start $rtt $y0 $n"
}

proc send_packet {start pair which} {
    global prober
    $prober send 1040 $start,$pair,$which
}

proc told {start rtt y0 pairs} {
    global out
    puts [format "%.7f %.7f" $rtt $y0]
    for {set pair 1} {$pair <= $pairs} {incr pair} {
        if {[info exists out($start,$pair)]} {
            puts [format %.7f $out($start,$pair)]
        } else {
            puts -1
        }
    }
}

# The network is there when the other script runs it; the ends of the pairs are added then.
Simulator instproc run_whole [Simulator info instargs run] [Simulator info instbody run]
Simulator instproc run {} {
    global router routers prober began begins starts every
    set prober [new Agent/MessagePassing]
    set arrivals [new Arrivals]
    $self attach-agent [host $self $router(1)] $prober
    $self attach-agent [host $self $router($routers)] $arrivals
    $self connect $prober $arrivals
    for {set i 0} {$i < $starts} {incr i} {
        set began($i) [expr {$begins + $every * $i}]
        $self at $began($i) "send_packet $i 0 0; send_packet $i 0 1"
    }
    $self run_whole
}
source [file join [file dirname [info script]] ns2_parking_lot.tcl]
