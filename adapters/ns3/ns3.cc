// A trace on ns-3: messages are byte streams over TCP, on a star or a fat tree of routers.
//
//     ns3-replay TRACE [star | tree]
//
// A connection a pair of nodes carries its messages one behind the other, each with HEADER bytes in front, so that empty ones
// exist too. The run ends with the last delivery: TCP's timers go on in ns-3 and mean nothing here.
#include <vef_replay.hpp>

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

using namespace ns3;

namespace {

constexpr std::uint16_t PORT = 5000;
constexpr std::uint64_t HEADER = 16;
constexpr std::uint32_t NODES_A_LEAF = 2, SPINES = 2; // of the fat tree

/// A star (one router), or leaves with NODES_A_LEAF nodes each, every one of them linked to every spine.
std::vector<Ipv4Address> wire(const NodeContainer &nodes, bool tree)
{
    NodeContainer leaves(tree ? (nodes.GetN() + NODES_A_LEAF - 1) / NODES_A_LEAF : 1), spines(tree ? SPINES : 0);
    InternetStackHelper internet;
    internet.Install(NodeContainer(nodes, leaves, spines));
    PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    cable.SetChannelAttribute("Delay", StringValue("250ns"));
    cable.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    Ipv4AddressHelper subnet("10.0.0.0", "255.255.255.252");
    const auto link = [&](Ptr<Node> below, Ptr<Node> above) {
        const auto interfaces = subnet.Assign(cable.Install(below, above));
        subnet.NewNetwork();
        return interfaces.GetAddress(0);
    };
    std::vector<Ipv4Address> addresses;
    for (std::uint32_t node = 0; node < nodes.GetN(); node++)
        addresses.push_back(link(nodes.Get(node), leaves.Get(tree ? node / NODES_A_LEAF : 0)));
    for (std::uint32_t leaf = 0; leaf < leaves.GetN(); leaf++)
        for (std::uint32_t spine = 0; spine < spines.GetN(); spine++) link(leaves.Get(leaf), spines.Get(spine));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    return addresses;
}

/// The messages from one node to another.
struct Stream {
    struct Piece {
        std::uint64_t id, left;
    };
    Ptr<Socket> socket;
    std::uint64_t to_send = 0;  // bytes that TCP has not taken yet
    std::deque<Piece> expected; // messages that have not arrived, and how much of each
};

class Simulation {
public:
    Simulation(vef::Replay &replay, std::uint32_t count, bool tree) : replay_(replay)
    {
        nodes_.Create(count);
        addresses_ = wire(nodes_, tree);
        for (std::uint32_t node = 0; node < count; node++) {
            auto listening = Socket::CreateSocket(nodes_.Get(node), TcpSocketFactory::GetTypeId());
            listening->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
            listening->Listen();
            listening->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
                                         MakeCallback(&Simulation::accepted, this));
        }
        wake_up_.SetFunction(&Simulation::pump, this);
        pump();
    }

private:
    static std::uint64_t now() { return static_cast<std::uint64_t>(Simulator::Now().GetPicoSeconds()); }

    /// Takes what is ready and sets the alarm for what comes next.
    void pump()
    {
        while (const auto message = replay_.pop_ready(now())) inject(*message);
        const auto next = replay_.next_ready();
        wake_up_.Cancel();
        if (next) wake_up_.Schedule(PicoSeconds(static_cast<std::int64_t>(*next - now())));
        if (replay_.is_complete()) Simulator::Stop();
    }

    void inject(const vef::Message &message)
    {
        Stream &stream = streams_[{message.src_node, message.dst_node}];
        if (!stream.socket) open(stream, message.src_node, message.dst_node);
        stream.expected.push_back({message.id, message.bytes + HEADER});
        stream.to_send += message.bytes + HEADER;
        if (connected_.count(PeekPointer(stream.socket))) send(stream.socket, stream.socket->GetTxAvailable());
    }

    void open(Stream &stream, std::uint32_t src, std::uint32_t dst)
    {
        stream.socket = Socket::CreateSocket(nodes_.Get(src), TcpSocketFactory::GetTypeId());
        stream.socket->Bind(InetSocketAddress(addresses_[src], next_port_));
        by_port_[{src, next_port_++}] = &stream;
        by_socket_[PeekPointer(stream.socket)] = &stream;
        stream.socket->SetConnectCallback(MakeCallback(&Simulation::connected, this), MakeNullCallback<void, Ptr<Socket>>());
        stream.socket->SetSendCallback(MakeCallback(&Simulation::send, this));
        stream.socket->Connect(InetSocketAddress(addresses_[dst], PORT));
    }

    void connected(Ptr<Socket> socket)
    {
        connected_[PeekPointer(socket)] = true;
        send(socket, socket->GetTxAvailable());
    }

    /// Gives TCP as much as it takes.
    void send(Ptr<Socket> socket, std::uint32_t)
    {
        Stream &stream = *by_socket_.at(PeekPointer(socket));
        while (stream.to_send > 0) {
            const auto room = std::min<std::uint64_t>(socket->GetTxAvailable(), stream.to_send);
            const int taken = room > 0 ? socket->Send(Create<Packet>(static_cast<std::uint32_t>(room))) : 0;
            if (taken <= 0) return;
            stream.to_send -= static_cast<std::uint64_t>(taken);
        }
    }

    void accepted(Ptr<Socket> socket, const Address &from)
    {
        const auto sender = InetSocketAddress::ConvertFrom(from);
        const auto src = std::find(addresses_.begin(), addresses_.end(), sender.GetIpv4()) - addresses_.begin();
        by_socket_[PeekPointer(socket)] = by_port_.at({static_cast<std::uint32_t>(src), sender.GetPort()});
        socket->SetRecvCallback(MakeCallback(&Simulation::received, this));
    }

    /// Bytes have come: whole messages are delivered.
    void received(Ptr<Socket> socket)
    {
        Stream &stream = *by_socket_.at(PeekPointer(socket));
        while (const auto packet = socket->Recv()) {
            std::uint64_t bytes = packet->GetSize();
            while (bytes > 0) {
                auto &first = stream.expected.front();
                const auto part = std::min(bytes, first.left);
                first.left -= part;
                bytes -= part;
                if (first.left > 0) break;
                NS_ABORT_MSG_UNLESS(replay_.delivered(first.id, now()), replay_.error());
                stream.expected.pop_front();
            }
        }
        pump();
    }

    vef::Replay &replay_;
    NodeContainer nodes_;
    std::vector<Ipv4Address> addresses_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Stream> streams_;          // by source and destination
    std::map<std::pair<std::uint32_t, std::uint16_t>, Stream *> by_port_;        // by source and its port
    std::map<const Socket *, Stream *> by_socket_;                               // both ends
    std::map<const Socket *, bool> connected_;
    std::uint16_t next_port_ = 10000;
    Timer wake_up_{Timer::CANCEL_ON_DESTROY};
};

} // namespace

int main(int argc, char **argv)
{
    const bool tree = argc == 3 && std::strcmp(argv[2], "tree") == 0;
    if (argc < 2 || argc > 3) return std::fprintf(stderr, "usage: %s TRACE [star | tree]\n", argv[0]), 2;
    Time::SetResolution(Time::PS);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::Ipv4GlobalRouting::RandomEcmpRouting", BooleanValue(true));

    vef::Builder builder;
    const std::uint32_t ranks = builder.job(argv[1]).ranks(); // rank r is on node r
    vef::Replay replay = builder.build();
    if (!replay) return std::fprintf(stderr, "%s\n", builder.error()), 1;
    Simulation simulation(replay, ranks, tree);
    Simulator::Run();
    if (const char *why = replay.stuck()) return std::fprintf(stderr, "%s\n", why), 1;
    const vef::Stats stats = replay.stats();
    std::printf("%ju messages, %ju bytes, run time %.6f ms\n", std::uintmax_t{stats.messages},
                std::uintmax_t{stats.bytes}, static_cast<double>(stats.finish) / 1e9);
    Simulator::Destroy();
}
