// Turns the totals that the engine reports into what happened since the last report.
#pragma once

#include <nlohmann/json.hpp>

#include <vector>

#include "pdes/result.h"

namespace pdes::app {

struct Sample {
  Progress progress;
  double events_per_s;          // since the last sample, like the shares
  std::vector<double> blocked;  // share of each thread's time
  double blocked_share;         // over all threads
  double percent;               // of virtual time
  double seconds_to_go;         // at the average speed so far; infinite before time has advanced
};

class Meter {
 public:
  Sample next(const Progress& now);

 private:
  Progress last_{};
};

// A point of the time series.
nlohmann::ordered_json point(const Sample& sample);

}  // namespace pdes::app
