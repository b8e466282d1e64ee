// SPDX-License-Identifier: Apache-2.0
// One CUBIC flow over sender - router - receiver in ns-3, beside which benchmarks/virtual_speed.py measures the virtual host.
//
//     ns3_line RATE_BPS BUFFER_BYTES WINDOW_BYTES SECONDS
//
// The bottleneck has 25 ms each way and a FIFO of BUFFER_BYTES; packets carry 1448 bytes; no window is larger than WINDOW_BYTES, which ends
// slow start without a loss where the buffer holds it. Prints the payload received, in bytes, and the seconds that Simulator::Run took.
#include <chrono>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static NetDeviceContainer
Link (Ptr<Node> a, Ptr<Node> b, uint64_t rateBps, const char *delay, const std::string &queue)
{
  PointToPointHelper link;
  link.SetDeviceAttribute ("DataRate", DataRateValue (DataRate (rateBps)));
  link.SetChannelAttribute ("Delay", StringValue (delay));
  link.SetQueue ("ns3::DropTailQueue", "MaxSize", StringValue (queue));
  return link.Install (a, b);
}

int
main (int argc, char *argv[])
{
  if (argc != 5)
    {
      std::cerr << "usage: ns3_line RATE_BPS BUFFER_BYTES WINDOW_BYTES SECONDS\n";
      return 2;
    }
  const uint64_t rateBps = std::stoull (argv[1]);
  const std::string buffer = std::string (argv[2]) + "B";
  const uint32_t windowBytes = std::stoul (argv[3]);
  const double seconds = std::stod (argv[4]);

  Config::SetDefault ("ns3::TcpL4Protocol::SocketType", TypeIdValue (TcpCubic::GetTypeId ()));
  Config::SetDefault ("ns3::TcpCubic::HyStart", BooleanValue (false));
  Config::SetDefault ("ns3::TcpSocket::SegmentSize", UintegerValue (1448));
  Config::SetDefault ("ns3::TcpSocket::InitialCwnd", UintegerValue (10));
  Config::SetDefault ("ns3::TcpSocket::SndBufSize", UintegerValue (windowBytes));
  Config::SetDefault ("ns3::TcpSocket::RcvBufSize", UintegerValue (windowBytes));

  NodeContainer nodes;
  nodes.Create (3);
  InternetStackHelper ().Install (nodes);
  const auto access = Link (nodes.Get (0), nodes.Get (1), 100 * rateBps, "0ms", "1000000p");
  const auto bottleneck = Link (nodes.Get (1), nodes.Get (2), rateBps, "25ms", buffer);
  Ipv4AddressHelper addresses;
  addresses.SetBase ("10.0.1.0", "255.255.255.0");
  addresses.Assign (access);
  addresses.SetBase ("10.0.2.0", "255.255.255.0");
  const auto receiver = addresses.Assign (bottleneck).GetAddress (1);
  // the helper gave each device a queueing discipline of its own
  TrafficControlHelper disciplines;
  disciplines.Uninstall (access);
  disciplines.Uninstall (bottleneck);
  Ipv4GlobalRoutingHelper::PopulateRoutingTables ();

  const uint16_t port = 5001;
  PacketSinkHelper sinks ("ns3::TcpSocketFactory", InetSocketAddress (Ipv4Address::GetAny (), port));
  const auto sink = DynamicCast<PacketSink> (sinks.Install (nodes.Get (2)).Get (0));
  BulkSendHelper senders ("ns3::TcpSocketFactory", InetSocketAddress (receiver, port));
  senders.SetAttribute ("SendSize", UintegerValue (131072));
  senders.Install (nodes.Get (0));

  Simulator::Stop (Seconds (seconds));
  const auto begun = std::chrono::steady_clock::now ();
  Simulator::Run ();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now () - begun;
  std::cout << sink->GetTotalRx () << ' ' << took.count () << '\n';
  Simulator::Destroy ();
  return 0;
}
