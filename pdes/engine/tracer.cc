#include "engine/tracer.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

#include "pdes/archive.h"

namespace pdes {
namespace {

constexpr std::size_t kSpans = 1 << 18, kLeastSpans = 256, kSamples = 4096;
constexpr std::size_t kCounts = 1 << 22, kIntervals = 256, kHottest = 16;

// Appends a line; each event is one.
[[gnu::format(printf, 2, 3)]] void line(std::string& text, const char* format, ...) {
  char buffer[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(buffer, sizeof buffer, format, values);
  va_end(values);
  if (!text.empty()) text += ",\n";
  text += buffer;
}

std::string number(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// A class of another language may have any name.
std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char letter : name) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return text + '"';
}

}  // namespace

Tracer::Tracer(std::string path, unsigned threads, unsigned rank, const World& world)
    : path_(std::move(path)),
      rank_(rank),
      world_(world),
      room_(std::max(kSpans / (threads + 1), kLeastSpans)),
      intervals_(std::clamp<std::size_t>(kCounts / (std::size_t{threads} * world.lp_count), 2, kIntervals) &
                 ~std::size_t{1}),
      tracks_(threads + 1) {
  if (rank != 0) return;
  file_.reset(std::fopen(path_.c_str(), "we"));
  if (file_ == nullptr) throw Error(path_ + " cannot be written: " + std::strerror(errno));
}

void Tracer::add(const Scope& scope) noexcept {
  Track& track = scope.track_ == kWindows ? tracks_.back() : tracks_[scope.track_];
  const std::uint64_t events = scope.of_ == nullptr ? 0 : scope.of_->executed() - scope.events_;
  if (scope.of_ != nullptr && events == 0) return;
  const Span span{scope.begin_, Clock::now(), scope.from_, scope.to_, events};
  try {
    if (track.spans.size() < room_) track.spans.push_back(span);
    else track.spans[track.added % room_] = span;
  } catch (const std::bad_alloc&) {
    // Lost: it counts as added.
  }
  ++track.added;
}

std::uint32_t* Tracer::counts(unsigned track_number, Clock::time_point at) noexcept {
  Track& track = tracks_[track_number];
  try {
    while (static_cast<std::size_t>((at - start_) / track.interval) >= intervals_) halve(track);
    const auto now = static_cast<std::size_t>((at - start_) / track.interval);
    if (track.executed.size() <= now) track.executed.resize(now + 1);
    if (track.executed[now].empty()) track.executed[now].resize(world_.lp_count);
    return track.executed[now].data();
  } catch (const std::bad_alloc&) { return nullptr; }
}

// Each two of its intervals become one.  A count of a run of hours stays at the most that it can be.
void Tracer::halve(Track& track) {
  auto& rows = track.executed;
  rows.resize(rows.size() + rows.size() % 2);
  for (std::size_t i = 0; i < rows.size() / 2; ++i) {
    std::vector<std::uint32_t>&first = rows[2 * i], &second = rows[2 * i + 1];
    if (first.empty()) first.swap(second);
    for (std::size_t lp = 0; lp < second.size(); ++lp) first[lp] += std::min(second[lp], UINT32_MAX - first[lp]);
    std::vector<std::uint32_t> both = std::move(first);
    rows[i].swap(both);
  }
  rows.resize(rows.size() / 2);
  track.interval *= 2;
}

void Tracer::make_intervals_equal() {
  Clock::duration longest{};
  for (const Track& track : tracks_) longest = std::max(longest, track.interval);
  for (Track& track : tracks_)
    while (track.interval < longest) halve(track);
}

void Tracer::count(std::uint64_t pending, std::uint64_t bytes) {
  if (counted_++ % count_every_ != 0) return;
  if (samples_.size() == kSamples) {  // every other one goes
    for (std::size_t i = 0; i < kSamples / 2; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kSamples / 2);
    count_every_ *= 2;
  }
  samples_.push_back({Clock::now(), pending, bytes});
}

std::uint64_t Tracer::lost() const noexcept {
  std::uint64_t all = 0;
  for (const Track& track : tracks_) all += track.added - track.spans.size();
  return all;
}

double Tracer::micros(Clock::time_point at) const noexcept {
  return std::chrono::duration<double, std::micro>(at - start_).count();
}

Tracer::Course Tracer::course(const Track& track, LpId first, LpId count) const {
  Course found(track.executed.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    if (const auto& row = track.executed[i]; !row.empty())
      found[i] = std::accumulate(row.begin() + first, row.begin() + first + count, std::uint64_t{0});
  return found;
}

std::vector<std::pair<std::uint64_t, LpId>> Tracer::hottest() const {
  std::vector<std::pair<std::uint64_t, LpId>> all(world_.lp_count);
  for (LpId lp = 0; lp < world_.lp_count; ++lp) all[lp].second = lp;
  for (const Track& track : tracks_)
    for (const auto& row : track.executed)
      for (std::size_t lp = 0; lp < row.size(); ++lp) all[lp].first += row[lp];
  const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kHottest));
  std::partial_sort(all.begin(), last, all.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  all.erase(std::find_if(all.begin(), last, [](const auto& lp) { return lp.first == 0; }), all.end());
  return all;
}

// Who is hot, and when: events a second of each class on each thread, and of the LPs that have executed most.
void Tracer::write_events_by_lp(std::string& text) const {
  for (std::size_t thread = 0; thread + 1 < tracks_.size(); ++thread) {
    std::map<std::string, Course> by_class;  // named, because a name may have several classes
    for (const LpClass& of : world_.classes) {
      Course& sum = by_class[of.name];
      const Course more = course(tracks_[thread], of.first, of.count);
      sum.resize(more.size());
      std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(), std::plus<>());
    }
    write_course(text, "events/s of thread " + std::to_string(thread), {by_class.begin(), by_class.end()});
  }
  unsigned place = 0;
  for (const auto& [events, lp] : hottest()) {
    Course sum;
    for (const Track& track : tracks_) {
      const Course more = course(track, lp, 1);
      sum.resize(std::max(sum.size(), more.size()));
      for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
    }
    const std::string name = number("hot %02.0f: LP ", ++place) + std::to_string(lp) + " (" + world_.class_of(lp).name +
                             "), " + std::to_string(events) + " events";
    write_course(text, name, {{"events/s", sum}});
  }
}

// A counter's track for each part.
void Tracer::write_course(std::string& text, const std::string& name,
                          const std::vector<std::pair<std::string, Course>>& parts) const {
  const double interval = micros(start_ + tracks_.front().interval), end = micros(ended_);
  for (std::size_t i = 0; i < parts.front().second.size(); ++i) {
    const double ts = interval * static_cast<double>(i);
    std::string values;
    for (const auto& [part, course] : parts) {
      const double rate = 1e6 * static_cast<double>(course[i]) / std::min(interval, end - ts);
      values += values.empty() ? "" : ",";
      values += quoted(part) + number(":%.6g", rate);
    }
    text += ",\n{\"name\":" + quoted(name) + number(",\"ph\":\"C\",\"pid\":%.0f", rank_) + number(",\"ts\":%.3f", ts);
    text += ",\"args\":{" + values + "}}";
  }
}

std::string Tracer::text() const {
  std::string text;
  line(text, R"({"name":"process_name","ph":"M","pid":%u,"args":{"name":"rank %u"}})", rank_, rank_);
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    const bool windows = i + 1 == tracks_.size();
    const std::string name = windows ? "windows" : "thread " + std::to_string(i);
    line(text, R"({"name":"thread_name","ph":"M","pid":%u,"tid":%zu,"args":{"name":"%s"}})", rank_, i, name.c_str());
    for (const Span& span : tracks_[i].spans) {
      const double ts = micros(span.begin), dur = micros(span.end) - ts;
      if (windows)
        line(text, R"({"name":"window","ph":"X","pid":%u,"tid":%zu,"ts":%.3f,"dur":%.3f,"args":{"from":%.10g,"to":%.10g}})",
             rank_, i, ts, dur, span.from, span.to);
      else if (span.events == 0)
        line(text, R"({"name":"waiting","ph":"X","pid":%u,"tid":%zu,"ts":%.3f,"dur":%.3f})", rank_, i, ts, dur);
      else
        line(text, R"({"name":"burst","ph":"X","pid":%u,"tid":%zu,"ts":%.3f,"dur":%.3f,"args":{"events":%)" PRIu64 "}}",
             rank_, i, ts, dur, span.events);
    }
  }
  for (const Sample& sample : samples_) {
    const double ts = micros(sample.at);
    line(text, R"({"name":"pending events","ph":"C","pid":%u,"ts":%.3f,"args":{"events":%)" PRIu64 "}}", rank_, ts,
         sample.pending);
    line(text, R"({"name":"memory","ph":"C","pid":%u,"ts":%.3f,"args":{"bytes":%)" PRIu64 "}}", rank_, ts, sample.bytes);
  }
  write_events_by_lp(text);
  return text;
}

std::string Tracer::finish(Ranks* ranks, std::uint64_t& all_lost) {
  std::string mine;
  all_lost = lost();
  ended_ = Clock::now();
  try {
    make_intervals_equal();
    mine = text();
  } catch (const std::bad_alloc&) {
    // The others' are written; this rank's are all lost.
    for (const Track& track : tracks_) all_lost += track.spans.size();
  }
  if (ranks != nullptr) {
    const std::vector<std::byte> message = to_bytes(mine, all_lost);
    mine.clear();
    all_lost = 0;
    for (const auto& bytes : ranks->gather(message)) {
      std::string theirs;
      std::uint64_t lost_there = 0;
      from_bytes(bytes, theirs, lost_there);
      mine += (mine.empty() || theirs.empty() ? "" : ",\n") + theirs;
      all_lost += lost_there;
    }
  }
  if (rank_ != 0) return {};
  std::fprintf(file_.get(), "{\"traceEvents\":[\n%s\n],\"otherData\":{\"lost\":%" PRIu64 "}}\n", mine.c_str(), all_lost);
  const bool failed = std::ferror(file_.get()) != 0;
  if (std::fclose(file_.release()) != 0 || failed) return path_ + " could not be written to its end";
  return {};
}

}  // namespace pdes
