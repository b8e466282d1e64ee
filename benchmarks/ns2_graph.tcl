# SPDX-License-Identifier: Apache-2.0
# Yu 2009 section 2.5.2 in ns-2: what a server's connections to clients on a random graph deliver in their first five seconds and in all.
#
#     ns ns2_graph.tcl NODES GRAPH_SEED MBIT_PER_S SEED OVERHEAD_S UNTIL_S GAP_S START < LINKS
#
# LINKS has a line "link A B SECONDS" for each link of the graph, then "server A", "clients A B …", and of the cross traffic "cross COUNT GAP_S",
# "from A B …" and "to A B …" (benchmarks/ns2_graphs.py writes them for NODES and GRAPH_SEED, which only say here which graph it is). Each link has MBIT_PER_S and a queue of 50 packets. START is reno, or
# liss, iss, miss or js: then a connection begins with what those to the same client know, as far as ns-2 can be told from outside. The
# first window of JS and MISS is paced over the path's round trip without queues.
# Prints connections, packets acknowledged in the first five seconds of each, packets acknowledged in all, and packets dropped anywhere.

lassign $argv nodes_ graph_ rate seed overhead until mean_gap kind
set ns [new Simulator]
set draws [new RNG]
$draws seed $seed
$defaultRNG seed $seed; # of overhead_

proc node {name} {
    global ns nodes
    if {![info exists nodes($name)]} {
        set nodes($name) [$ns node]
    }
    return $nodes($name)
}

set queues [list]
while {[gets stdin words] >= 0} {
    if {[lindex $words 0] eq "link"} {
        lassign $words _ a b seconds
        set ends [list [node $a] [node $b]]
        $ns duplex-link {*}$ends ${rate}Mb ${seconds}s DropTail
        foreach pair [list $ends [lreverse $ends]] {
            $ns queue-limit {*}$pair 50
            lappend queues [$ns monitor-queue {*}$pair ""]
            set seconds_of([[lindex $pair 0] id],[[lindex $pair 1] id]) $seconds
        }
    } else {
        set places([lindex $words 0]) [lrange $words 1 end]
    }
}

# Time there and back without queues, s, along the way that ns-2 has computed
proc round_trip {from to} {
    global ns seconds_of
    set sum 0.0
    for {set at [$from id]} {$at != [$to id]} {set at $next} {
        set next [[$ns get-routelogic] lookup $at [$to id]]
        set sum [expr {$sum + 2 * $seconds_of($at,$next)}]
    }
    return $sum
}

proc connection {from to} {
    global ns overhead
    set sender [new Agent/TCP/Reno]
    foreach {variable value} [list window_ 100 packetSize_ 1000 overhead_ $overhead] {
        $sender set $variable $value
    }
    set sink [new Agent/TCPSink]
    $ns attach-agent [node $from] $sender
    $ns attach-agent [node $to] $sink
    $ns connect $sender $sink
    set source [new Application/FTP]
    $source attach-agent $sender
    return [list $sender $source]
}

# What is known of a client's connections: those that are there, oldest first; their losses in cuts(…), last(…) and between(…)
array set there {}

# (S + L w) / (L + S / w + 1), at least 2; 0 where none is in congestion avoidance. w: the oldest one's window, with iss its mean
proc fair {client} {
    global there kind
    set windows 0.0
    set count 0
    foreach sender $there($client) {
        set window [$sender set cwnd_]
        if {$window < [$sender set ssthresh_]} {
            set windows [expr {$windows + $window}]
            continue
        }
        if {[incr count] == 1} {
            set oldest [expr {$kind eq "iss" ? [$sender set awnd_] : $window}]
        }
    }
    if {!$count || $oldest < 1} {
        return 0
    }
    return [expr {max(2, int(($windows + $count * $oldest) / ($count + $windows / $oldest + 1)))}]
}

# A loss of `who` (a connection, or a client for all of its): the mean time between losses has a weight of 1/8 for each
proc lost {who} {
    global ns last between
    set now [$ns now]
    if {[info exists last($who)]} {
        set passed [expr {$now - $last($who)}]
        if {[info exists between($who)]} {
            set passed [expr {$between($who) + ($passed - $between($who)) / 8}]
        }
        set between($who) $passed
    }
    set last($who) $now
}

proc look_for_losses {} {
    global ns there cuts
    foreach client [array names there] {
        foreach sender $there($client) {
            set seen [$sender set ncwndcuts_]
            if {$seen > $cuts($sender)} {
                set cuts($sender) $seen
                lost $sender
                lost $client
            }
        }
    }
    $ns at [expr {[$ns now] + 0.02}] look_for_losses
}

# MISS' first window: what a client's connections grow by until their next loss is due; 0 where that is not known
proc room {client round} {
    global ns there last between
    set oldest [lindex $there($client) 0]
    if {![info exists between($oldest)] || ![info exists between($client)]} {
        return 0
    }
    set due [expr {$last($client) + $between($client) - [$ns now]}]
    return [expr {max(0, int($between($oldest) / $between($client) * $due / $round))}]
}

proc serve {client sender source} {
    global ns there kind cuts rounds
    set threshold 0
    set window 0
    if {$kind ne "reno"} {
        set threshold [fair $client]
    }
    if {$kind eq "js"} {
        set window $threshold
    } elseif {$kind eq "miss"} {
        set window [room $client $rounds($client)]
    }
    set cuts($sender) 0
    lappend there($client) $sender
    $sender set ssthresh_ [expr {$threshold ? max($threshold, $window) : 10}]
    if {!$threshold || !$window} {
        $source start
        return
    }
    $sender set cwnd_ $window
    set now [$ns now]
    for {set i 0} {$i < $window} {incr i} {
        $ns at [expr {$now + $i * $rounds($client) / $window}] "$sender advanceby 1"
    }
    $ns at [expr {$now + $rounds($client)}] "$source start"
}

proc leave {client sender source} {
    global there
    $source stop
    $sender set window_ 0
    set there($client) [lsearch -all -inline -not -exact $there($client) $sender]
}

proc acknowledged {when sender} {
    global packets
    incr packets($when) [$sender set ack_]
}

proc any {list} {
    global draws
    return [lindex $list [expr {int([$draws uniform 0 [llength $list]])}]]
}

# The cross traffic, then the server's connections
lassign $places(cross) count cross_gap
set at 0.0
for {set i 0} {$i < $count} {incr i} {
    set at [expr {$at + [$draws exponential $cross_gap]}]
    lassign [connection [any $places(from)] [any $places(to)]] sender source
    $ns at $at "$sender set ssthresh_ 10; $source start"
}
set life [new RandomVariable/Pareto]
$life use-rng $draws
$life set avg_ 100.0
$life set shape_ 1.35
array set packets {first 0 whole 0}
set connections 0
foreach client $places(clients) {
    set there($client) [list]
}
for {set at [$draws exponential $mean_gap]} {$at < $until} {set at [expr {$at + [$draws exponential $mean_gap]}]} {
    incr connections
    set client [any $places(clients)]
    lassign [connection $places(server) $client] sender source
    set end [expr {min($at + [$life value], $until)}]
    $ns at $at "serve $client $sender $source"
    $ns at [expr {min($at + 5, $end)}] "acknowledged first $sender"
    $ns at $end "acknowledged whole $sender; leave $client $sender $source"
}
$ns at 0.0 {
    foreach client $places(clients) {
        set rounds($client) [round_trip [node $places(server)] [node $client]]
    }
}
if {$kind eq "miss"} {
    $ns at 0.0 look_for_losses
}
$ns at [expr {$until + 0.001}] {
    set drops 0
    foreach queue $queues {
        incr drops [$queue set pdrops_]
    }
    puts "$connections $packets(first) $packets(whole) $drops"
    exit 0
}
$ns run
