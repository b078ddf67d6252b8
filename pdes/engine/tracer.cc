#include "engine/tracer.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstring>

#include "pdes/archive.h"

namespace pdes {
namespace {

constexpr std::size_t kSpans = 1 << 18, kLeastSpans = 256, kSamples = 4096;

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

}  // namespace

Tracer::Tracer(std::string path, unsigned threads, unsigned rank)
    : path_(std::move(path)), rank_(rank), room_(std::max(kSpans / (threads + 1), kLeastSpans)), tracks_(threads + 1) {
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
  return text;
}

std::string Tracer::finish(Ranks* ranks, std::uint64_t& all_lost) {
  std::string mine;
  all_lost = lost();
  try {
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
