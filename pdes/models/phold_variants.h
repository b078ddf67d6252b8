// The options of PHOLD, and its variants: payloads of several sizes, other delays, LPs with state, LPs that are
// preferred as destinations.  If one of these is requested, another class of LP runs instead of the plain one; with
// equal parameters both do the same.
#pragma once

#include <cstdint>
#include <string>

#include "pdes/app.h"

namespace phold {

// Of the part of a delay beyond the lookahead.
enum class Distribution : std::uint8_t {
  exponential,
  uniform,  // from 0 to twice the mean
  bimodal,  // nine of ten are short: exponential, a tenth of the mean; one is long
  ties,     // always the mean: events have the times of many others
  pareto,   // exponent 2: infinite variance, some events in the far future
};

struct Parameters {
  std::uint32_t lps = 8192;
  std::uint32_t events_per_lp = 1;
  double remote = 0.25;
  double mean = 1;
  std::string payload = "8";
  double imbalance = 0;
  double hot = 1, hot_turn = 80;
  std::uint64_t state = 0;
  Distribution distribution = Distribution::exponential;
};

void declare(pdes::App& app, Parameters& parameters);

// Throws Error.
void check(const Parameters& parameters, const pdes::Options& options);

bool is_varied(const Parameters& parameters);

void add_varied(pdes::Simulation& simulation, const Parameters& parameters);

}  // namespace phold
