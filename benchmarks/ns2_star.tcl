# SPDX-License-Identifier: Apache-2.0
# Yu 2009 Fig 2-2's star in ns-2: what a server's connections deliver in their first five seconds and in all.
#
#     ns ns2_star.tcl MBIT_PER_S SEED ACCESS_DELAY_MS OVERHEAD_S UNTIL_S SHAPE START
#
# SHAPE is that of the lifetimes. START is reno, or liss, iss, miss or js: then a connection begins with what those that are
# there know (docs/algorithms), as far as ns-2 can be told from outside. The first window of JS and MISS is paced over the
# path's round trip without queues.
# Prints connections, packets acknowledged in the first five seconds of each, packets acknowledged in all, and packets that
# the two slow links dropped, those of the cross traffic included.

lassign $argv rate seed access overhead until shape kind

set ns [new Simulator]
set draws [new RNG]
$draws seed $seed
$defaultRNG seed $seed; # of overhead_
set gap [new RandomVariable/Exponential]
$gap use-rng $draws
$gap set avg_ 5.0
set life [new RandomVariable/Pareto]
$life use-rng $draws
$life set avg_ 100.0
$life set shape_ $shape

proc connect {a b rate delay packets} {
    global ns
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $packets
    $ns queue-limit $b $a $packets
}

proc host {router} {
    global ns access
    set node [$ns node]
    connect $node $router 100Mb ${access}ms 1000
    return $node
}

proc connection {from to} {
    global ns overhead
    set sender [new Agent/TCP/Reno]
    $sender set window_ 100
    $sender set packetSize_ 1000; # 40 bytes of headers are added
    $sender set overhead_ $overhead
    set receiver [new Agent/TCPSink]
    $ns attach-agent $from $sender
    $ns attach-agent $to $receiver
    $ns connect $sender $receiver
    set source [new Application/FTP]
    $source attach-agent $sender
    return [list $sender $source]
}

proc begin {sender source} {
    $sender set ssthresh_ 10; # a simulation's start has reset what was set before
    $source start
}

# The fair window of one more connection, (S + L w) / (L + S / w + 1), or 0 where nobody is in congestion avoidance
set there [list]
proc fair {} {
    global there kind
    set steady 0
    set starting 0.0
    set oldest 0.0
    foreach sender $there {
        if {[$sender set cwnd_] < [$sender set ssthresh_]} {
            set starting [expr {$starting + [$sender set cwnd_]}]
        } else {
            if {!$steady} {
                set oldest [$sender set [expr {$kind eq "iss" ? "awnd_" : "cwnd_"}]]
            }
            incr steady
        }
    }
    if {!$steady || $oldest < 1} {
        return 0
    }
    return [expr {max(2, int(($starting + $steady * $oldest) / ($steady + $starting / $oldest + 1)))}]
}

# Times between losses, of each connection and of all (name "all"): the last one, and their mean with a weight of 1/8
proc lost {name} {
    global ns last between
    set now [$ns now]
    if {[info exists last($name)]} {
        set gap [expr {$now - $last($name)}]
        set mean [expr {[info exists between($name)] ? $between($name) : $gap}]
        set between($name) [expr {$mean + ($gap - $mean) / 8}]
    }
    set last($name) $now
}

set cuts_every 0.02
proc watch {} {
    global ns there cuts cuts_every
    foreach sender $there {
        if {[$sender set ncwndcuts_] > $cuts($sender)} {
            set cuts($sender) [$sender set ncwndcuts_]
            lost $sender
            lost all
        }
    }
    $ns at [expr {[$ns now] + $cuts_every}] watch
}

# MISS' first window: what the connections that are there grow by until the next loss is due, or 0 where that is not known
proc room {round} {
    global ns there last between
    set oldest [lindex $there 0]
    if {![info exists between($oldest)] || ![info exists between(all)]} {
        return 0
    }
    set left [expr {$between(all) - ([$ns now] - $last(all))}]
    return [expr {max(0, int($between($oldest) / $between(all) * $left / $round))}]
}

proc serve {sender source} {
    global ns there kind access cuts
    set round [expr {0.2 + 0.004 * $access}]
    set threshold [expr {$kind eq "reno" ? 0 : [fair]}]
    set window [expr {$kind eq "miss" ? [room $round] : $kind eq "js" ? $threshold : 0}]
    set cuts($sender) 0
    lappend there $sender
    if {!$threshold} {
        begin $sender $source
        return
    }
    $sender set ssthresh_ [expr {max($threshold, $window)}]
    if {!$window} {
        $source start
        return
    }
    $sender set cwnd_ $window
    for {set i 0} {$i < $window} {incr i} {
        $ns at [expr {[$ns now] + $i * $round / $window}] "$sender advanceby 1"
    }
    $ns at [expr {[$ns now] + $round}] "$source start"
}

proc leave {sender source} {
    global there
    $source stop
    $sender set window_ 0
    set there [lsearch -all -inline -not -exact $there $sender]
}

foreach name {r1 r2 r3} {
    set $name [$ns node]
}
connect $r1 $r2 ${rate}Mb 50ms 50
connect $r2 $r3 ${rate}Mb 50ms 50
set queues [list [$ns monitor-queue $r1 $r2 ""] [$ns monitor-queue $r2 $r3 ""]]
set server [host $r1]
for {set i 0} {$i < 5} {incr i} {
    set client($i) [host $r3]
    lassign [connection [host $r1] [host $r2]] sender source
    $ns at [$draws uniform 0 5] "begin $sender $source"
}

if {$kind eq "miss"} {
    $ns at 0.0 watch
}

set first 0
set whole 0
proc count {variable sender} {
    upvar #0 $variable sum
    set sum [expr {$sum + [$sender set ack_]}]
}

set connections 0
for {set at [$gap value]} {$at < $until} {set at [expr {$at + [$gap value]}]} {
    incr connections
    lassign [connection $server $client([expr {int([$draws uniform 0 5])}])] sender source
    set end [expr {min($at + [$life value], $until)}]
    $ns at $at "serve $sender $source"
    $ns at [expr {min($at + 5, $end)}] "count first $sender"
    $ns at $end "count whole $sender; leave $sender $source"
}
proc finish {} {
    global connections first whole queues
    set drops 0
    foreach queue $queues {
        incr drops [$queue set pdrops_]
    }
    puts "$connections $first $whole $drops"
    exit 0
}
$ns at [expr {$until + 0.001}] finish
$ns run
