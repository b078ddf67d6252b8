// PHOLD on ns-3's sequential simulator: phold-ns3 --lps N --events-per-lp N --remote P --mean T --lookahead T --end T --seed N.
// An LP is a context, of which ns-3 calls the node.  A unit of time is a second, of which ns-3 counts nanoseconds.
#include <ns3/core-module.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

struct Parameters {
  std::uint32_t lps = 8192, events_per_lp = 1;
  double remote = 0.25, mean = 1, lookahead = 0.1, end = 80;
} parameters;

struct Lp {
  std::uint64_t random, executed;
};
std::vector<Lp> lps;

std::uint64_t bits(Lp& lp) {  // splitmix64
  std::uint64_t z = lp.random += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
double uniform(Lp& lp) { return static_cast<double>(bits(lp) >> 11) * 0x1p-53; }

void execute(std::uint32_t id);

void send(Lp& from, std::uint32_t to) {
  double delay = parameters.lookahead - (parameters.mean - parameters.lookahead) * std::log(1 - uniform(from));
  ns3::Simulator::ScheduleWithContext(to, ns3::Seconds(delay), &execute, to);
}

void execute(std::uint32_t id) {
  Lp& lp = lps[id];
  ++lp.executed;
  bool leaves = uniform(lp) < parameters.remote;
  send(lp, leaves ? static_cast<std::uint32_t>(uniform(lp) * parameters.lps) : id);
}

}  // namespace

int main(int count, char** words) {
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < count; i += 2) {
    double value = std::atof(words[i + 1]);
    auto is = [&](const char* name) { return std::strcmp(words[i], name) == 0; };
    if (is("--lps")) parameters.lps = static_cast<std::uint32_t>(value);
    else if (is("--events-per-lp")) parameters.events_per_lp = static_cast<std::uint32_t>(value);
    else if (is("--remote")) parameters.remote = value;
    else if (is("--mean")) parameters.mean = value;
    else if (is("--lookahead")) parameters.lookahead = value;
    else if (is("--end")) parameters.end = value;
    else if (is("--seed")) seed = static_cast<std::uint64_t>(value);
    else return std::fprintf(stderr, "no option %s\n", words[i]), 2;
  }
  for (std::uint32_t id = 0; id < parameters.lps; ++id) lps.push_back({(seed << 32) + id, 0});
  for (std::uint32_t id = 0; id < parameters.lps; ++id)
    for (std::uint32_t i = 0; i < parameters.events_per_lp; ++i) send(lps[id], id);
  ns3::Simulator::Stop(ns3::Seconds(parameters.end));

  auto began = std::chrono::steady_clock::now();
  ns3::Simulator::Run();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::uint64_t events = 0;
  for (const Lp& lp : lps) events += lp.executed;
  ns3::Simulator::Destroy();
  std::printf("{\"ops\":%llu,\"ns_per_op\":%.4f,\"seconds\":%.9f,\"events\":%llu,\"events_per_s\":%.4f}\n",
              static_cast<unsigned long long>(events), seconds * 1e9 / static_cast<double>(events), seconds,
              static_cast<unsigned long long>(events), static_cast<double>(events) / seconds);
}
