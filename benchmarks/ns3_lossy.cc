// SPDX-License-Identifier: Apache-2.0
// A connection over one link that loses packets at random, in ns-3 with its own TCP: topologies one and four of Afifi 2014.
//
//     ns3_lossy ALGORITHM RATE_MBPS DELAY_MS LOSS ACK_LOSS QUEUE_PACKETS BACK SEED SECONDS
//
// ALGORITHM: newreno or westwood (Westwood+). LOSS and ACK_LOSS: of the packets in its direction and in the other, 0 to 1. BACK: 1 where
// a NewReno connection sends data the other way, else 0. As the thesis has it: 536 bytes in a packet, an ACK for every second one,
// a first window of one; and NewReno's own recovery, with neither SACK nor time stamps. Prints the highest sequence number sent, the
// largest window after the first loss (bytes) and the mean of the round-trip times (ms).
#include <algorithm>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static const uint16_t g_port = 5001;
static const uint32_t g_bufferBytes = 5000000;
static uint32_t g_highest = 0, g_largest = 0;
static bool g_hasLost = false;
static double g_count = 0, g_sumMs = 0;

static void
OnHighest (SequenceNumber32, SequenceNumber32 now)
{
  g_highest = std::max (g_highest, now.GetValue ());
}

static void
OnWindow (uint32_t before, uint32_t now)
{
  g_hasLost |= now < before;
  if (g_hasLost)
    g_largest = std::max (g_largest, now);
}

static void
OnRtt (Time, Time now)
{
  g_count += 1;
  g_sumMs += now.GetSeconds () * 1e3;
}

static void
Watch ()
{
  const std::string socket = "/NodeList/0/$ns3::TcpL4Protocol/SocketList/0/";
  Config::ConnectWithoutContext (socket + "HighestSequence", MakeCallback (&OnHighest));
  Config::ConnectWithoutContext (socket + "CongestionWindow", MakeCallback (&OnWindow));
  Config::ConnectWithoutContext (socket + "RTT", MakeCallback (&OnRtt));
}

static void
LoseOnArrival (Ptr<NetDevice> device, double part, int64_t stream)
{
  auto model = CreateObject<RateErrorModel> ();
  model->SetUnit (RateErrorModel::ERROR_UNIT_PACKET);
  model->SetRate (part);
  model->AssignStreams (stream);
  device->SetAttribute ("ReceiveErrorModel", PointerValue (model));
}

static void
Connect (Ptr<Node> from, Ptr<Node> to, Ipv4Address address)
{
  PacketSinkHelper sinks ("ns3::TcpSocketFactory", InetSocketAddress (Ipv4Address::GetAny (), g_port));
  sinks.Install (to);
  BulkSendHelper senders ("ns3::TcpSocketFactory", InetSocketAddress (address, g_port));
  senders.SetAttribute ("SendSize", UintegerValue (65536));
  senders.Install (from);
}

int
main (int argc, char *argv[])
{
  if (argc != 10)
    {
      std::cerr << "usage: ns3_lossy ALGORITHM RATE_MBPS DELAY_MS LOSS ACK_LOSS QUEUE_PACKETS BACK SEED SECONDS\n";
      return 2;
    }
  RngSeedManager::SetSeed (1);
  RngSeedManager::SetRun (std::stoul (argv[8]));

  Config::SetDefault ("ns3::TcpL4Protocol::SocketType", TypeIdValue (TcpNewReno::GetTypeId ()));
  Config::SetDefault ("ns3::TcpL4Protocol::RecoveryType", TypeIdValue (TcpClassicRecovery::GetTypeId ()));
  Config::SetDefault ("ns3::TcpWestwood::ProtocolType", EnumValue (TcpWestwood::WESTWOODPLUS));
  Config::SetDefault ("ns3::TcpSocketBase::Sack", BooleanValue (false));
  Config::SetDefault ("ns3::TcpSocketBase::Timestamp", BooleanValue (false));
  Config::SetDefault ("ns3::TcpSocket::SegmentSize", UintegerValue (536));
  Config::SetDefault ("ns3::TcpSocket::InitialCwnd", UintegerValue (1));
  Config::SetDefault ("ns3::TcpSocket::DelAckCount", UintegerValue (2));
  Config::SetDefault ("ns3::TcpSocket::SndBufSize", UintegerValue (g_bufferBytes));
  Config::SetDefault ("ns3::TcpSocket::RcvBufSize", UintegerValue (g_bufferBytes));

  NodeContainer nodes;
  nodes.Create (2);
  InternetStackHelper ().Install (nodes);
  if (std::string (argv[1]) == "westwood")
    nodes.Get (0)->GetObject<TcpL4Protocol> ()->SetAttribute ("SocketType", TypeIdValue (TcpWestwood::GetTypeId ()));

  PointToPointHelper link;
  link.SetDeviceAttribute ("DataRate", StringValue (std::string (argv[2]) + "Mbps"));
  link.SetChannelAttribute ("Delay", StringValue (std::string (argv[3]) + "ms"));
  link.SetQueue ("ns3::DropTailQueue", "MaxSize", StringValue (std::string (argv[6]) + "p"));
  const auto devices = link.Install (nodes);
  LoseOnArrival (devices.Get (1), std::stod (argv[4]), 1);
  LoseOnArrival (devices.Get (0), std::stod (argv[5]), 2);
  Ipv4AddressHelper addresses;
  addresses.SetBase ("10.0.1.0", "255.255.255.0");
  const auto interfaces = addresses.Assign (devices);
  // the helper gave each device a queueing discipline of its own
  TrafficControlHelper ().Uninstall (devices);

  Connect (nodes.Get (0), nodes.Get (1), interfaces.GetAddress (1));
  Simulator::Schedule (MilliSeconds (1), &Watch);
  if (std::stoi (argv[7]))
    Connect (nodes.Get (1), nodes.Get (0), interfaces.GetAddress (0));

  Simulator::Stop (Seconds (std::stod (argv[9])));
  Simulator::Run ();
  std::cout << g_highest << ' ' << g_largest << ' ' << g_sumMs / g_count << '\n';
  Simulator::Destroy ();
  return 0;
}
