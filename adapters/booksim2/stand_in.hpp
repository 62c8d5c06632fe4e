// A stand-in for BookSim2 in the test of the adapter: the names of BookSim's interface that vef_booksim.cpp uses, and behind them a network
// without contention, in which a node sends a flit a cycle and every flit arrives LATENCY cycles later. Written for the test, from the use of the names alone.
#ifndef VEF_BOOKSIM_STAND_IN_HPP
#define VEF_BOOKSIM_STAND_IN_HPP

#include <fstream>
#include <limits>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

constexpr int LATENCY = 10;

extern int gNodes;

class Configuration {
public:
    void AddStrField(const std::string &field, const std::string &value) { text_[field] = value; }
    void Assign(const std::string &field, const std::string &value)
    {
        if (_int_map.count(field) > 0) _int_map[field] = std::stoi(value);
        else text_[field] = value;
    }
    std::string GetStr(const std::string &field) const { return text_.at(field); }
    int GetInt(const std::string &field) const { return _int_map.at(field); }

protected:
    std::map<std::string, int> _int_map{{"classes", 1}, {"use_read_write", 0}, {"subnets", 1}, {"nodes", 64}};

private:
    std::map<std::string, std::string> text_;
};

class BookSimConfig : public Configuration {};

/** Arguments of the form NAME=VALUE; others are left out, as the names of files are here. */
inline bool ParseArgs(Configuration *config, int argc, char **argv)
{
    for (int at = 1; at < argc; at++) {
        const std::string argument = argv[at];
        const auto equals = argument.find('=');
        if (equals != std::string::npos) config->Assign(argument.substr(0, equals), argument.substr(equals + 1));
    }
    return argc > 1;
}

inline void InitializeRoutingMap(const Configuration &) {}
inline int RandomInt(int) { return 0; }

class Stats {};

class Network {
public:
    static Network *New(const Configuration &config, const std::string &)
    {
        gNodes = config.GetInt("nodes");
        return new Network;
    }
};

struct Credit {
    static int OutStanding() { return 0; }
};

struct Flit {
    enum FlitType { ANY_TYPE };
    FlitType type;
    int vc, cl, ctime, id, pid, src, dest, pri, subnetwork;
    bool head, tail, record, watch;
    static Flit *New() { return new Flit; }
};

class TrafficManager {
public:
    TrafficManager(const Configuration &, const std::vector<Network *> &)
        : _subnets(1), _partial_packets(static_cast<std::size_t>(gNodes), std::vector<std::list<Flit *>>(1)), _total_in_flight_flits(1), _measured_in_flight_flits(1)
    {
    }
    virtual ~TrafficManager() = default;
    int getTime() { return _time; }
    Stats *getStats(const std::string &) { return nullptr; }
    virtual void UpdateStats() {}
    virtual void DisplayStats() {}

protected:
    enum ePriority { class_based, age_based };
    enum eSimState { warming_up, running };

    virtual int _IssuePacket(int source, int cl) = 0;
    virtual void _RetireFlit(Flit *flit, int)
    {
        _total_in_flight_flits[0].erase(flit->id);
        _measured_in_flight_flits[0].erase(flit->id);
        delete flit;
    }

    void _Step()
    {
        for (; !moving_.empty() && moving_.front().first <= _time; moving_.pop_front())
            _RetireFlit(moving_.front().second, moving_.front().second->dest);
        for (auto &queue : _partial_packets) {
            if (queue[0].empty()) continue;
            moving_.emplace_back(_time + LATENCY, queue[0].front());
            queue[0].pop_front();
        }
        _time++;
    }

    ePriority _pri_type = class_based;
    eSimState _sim_state = warming_up;
    int _subnets, _time = 0, _cur_pid = 0, _cur_id = 0;
    std::vector<std::vector<std::list<Flit *>>> _partial_packets;
    std::vector<std::map<int, Flit *>> _total_in_flight_flits, _measured_in_flight_flits;

private:
    std::list<std::pair<int, Flit *>> moving_;
};

#endif
