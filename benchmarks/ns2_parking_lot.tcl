# SPDX-License-Identifier: Apache-2.0
# Yu 2009 Fig 4-33's cross traffic in ns-2: the windows of the five connections over the whole path after their growth.
#
#     ns ns2_parking_lot.tcl MBIT_PER_S SEED FIRST_SSTHRESH OVERHEAD_S UNTIL_S [SSTHRESH SECONDS]
#
# Prints their mean in packets. With SSTHRESH another connection over the whole path begins then, whose slow start ends at that window and whose
# packets are acknowledged one by one; printed as well is how many packets it has sent again SECONDS later. Connections start one by one, an exponential time of 1 s apart on average, in an order drawn
# from the seed. The thesis' fifth pair over one hop has no link of its own and is left out.

lassign $argv rate seed first overhead until ssthresh seconds
set routers 5
set cross 5

set ns [new Simulator]
set draws [new RNG]
$draws seed $seed
$defaultRNG seed $seed; # of overhead_

proc connect {ns from to rate delay} {
    $ns duplex-link $from $to $rate $delay DropTail
    $ns queue-limit $from $to 500
    $ns queue-limit $to $from 500
}

proc host {ns router} {
    set node [$ns node]
    connect $ns $node $router 50Mb 10ms
    return $node
}

proc connection {ns from to {sink TCPSink/DelAck}} {
    upvar first first overhead overhead
    set sender [new Agent/TCP/Reno]
    $sender set window_ 1000
    $sender set packetSize_ 1000; # 40 bytes of headers are added
    $sender set overhead_ $overhead
    set receiver [new Agent/$sink]
    $ns attach-agent $from $sender
    $ns attach-agent $to $receiver
    $ns connect $sender $receiver
    # a simulation's start resets each agent and its threshold with it
    $ns at 0.0 "$sender set ssthresh_ $first"
    return $sender
}

for {set i 1} {$i <= $routers} {incr i} {
    set router($i) [$ns node]
    if {$i > 1} {
        connect $ns $router([expr {$i - 1}]) $router($i) ${rate}Mb 50ms
    }
}
set whole {}
set all {}
for {set i 1} {$i <= $cross} {incr i} {
    lappend whole [connection $ns [host $ns $router(1)] [host $ns $router($routers)]]
}
for {set i 1} {$i < $routers} {incr i} {
    lappend all [connection $ns [host $ns $router($i)] [host $ns $router([expr {$i + 1}])]]
}
set all [concat $whole $all]
set start 0
while {[llength $all] > 0} {
    set place [expr {int([$draws uniform 0 [llength $all]])}]
    set source [new Application/FTP]
    $source attach-agent [lindex $all $place]
    set all [lreplace $all $place $place]
    set start [expr {$start + [$draws exponential 1.0]}]
    $ns at $start "$source start"
}

proc windows {senders} {
    set sum 0.0
    foreach sender $senders {
        set sum [expr {$sum + [$sender set cwnd_]}]
    }
    puts [expr {$sum / [llength $senders]}]
}
$ns at $until "windows {$whole}"

if {$ssthresh ne ""} {
    set sender [connection $ns [host $ns $router(1)] [host $ns $router($routers)] TCPSink]
    $sender set window_ 10000
    set source [new Application/FTP]
    $source attach-agent $sender
    $ns at $until "$sender set ssthresh_ $ssthresh; $source start"
    set until [expr {$until + $seconds}]
    $ns at $until {puts [$sender set nrexmitpack_]}
}
$ns at $until {exit 0}
$ns run
