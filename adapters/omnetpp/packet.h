// The packets that Replay sends, and that a network carries to the gate of their destination.
#ifndef VEF_PACKET_H
#define VEF_PACKET_H

#include <cstdint>

#include <omnetpp.h>

class VefPacket : public omnetpp::cPacket {
public:
    VefPacket(std::uint64_t of, std::uint32_t to, std::uint64_t bytes)
        : cPacket(nullptr, 0, static_cast<std::int64_t>(8 * bytes)), message(of), destination(to)
    {
    }
    VefPacket *dup() const override { return new VefPacket(*this); }

    std::uint64_t message;     // id in the replay
    std::uint32_t destination; // end node: index of a gate of Replay
};

#endif
