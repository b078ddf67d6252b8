#include "app/meter.h"

#include <algorithm>
#include <limits>

namespace pdes::app {

Sample Meter::next(const Progress& now) {
  double seconds = now.wall_s - last_.wall_s, blocked = 0;
  last_.blocked_s.resize(now.blocked_s.size());
  std::vector<double> shares;
  for (std::size_t thread = 0; thread < now.blocked_s.size(); ++thread) {
    double share = seconds > 0 ? (now.blocked_s[thread] - last_.blocked_s[thread]) / seconds : 0;
    shares.push_back(std::clamp(share, 0.0, 1.0));
    blocked += shares.back();
  }
  if (!shares.empty()) blocked /= static_cast<double>(shares.size());
  double rate = seconds > 0 ? static_cast<double>(now.events - last_.events) / seconds : 0;
  double percent = now.end > 0 ? std::clamp(100 * now.now / now.end, 0.0, 100.0) : 0;
  double to_go =
      now.now > 0 ? std::max(0.0, now.wall_s * (now.end - now.now) / now.now) : std::numeric_limits<double>::infinity();
  last_ = now;
  return {now, rate, std::move(shares), blocked, percent, to_go};
}

nlohmann::ordered_json point(const Sample& sample) {
  const Progress& at = sample.progress;
  return {{"wall_s", at.wall_s},
          {"now", at.now},
          {"percent", sample.percent},
          {"events", at.events},
          {"events_per_s", sample.events_per_s},
          {"window", at.window},
          {"windows", at.windows},
          {"pending", at.pending},
          {"bytes", at.bytes},
          {"blocked", sample.blocked},
          {"thread_events", at.thread_events}};
}

}  // namespace pdes::app
