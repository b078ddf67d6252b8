#include "app/watch.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "app/text.h"

namespace pdes::app {

OutputFile::OutputFile(const std::string& option, const std::string& path)
    : name_(option + ": " + path), file_(std::fopen(path.c_str(), "we")) {
  if (!file_) throw Error(name_ + " cannot be written: " + std::strerror(errno));
}

void OutputFile::line(const std::string& text) {
  std::fprintf(file_.get(), "%s\n", text.c_str());
  std::fflush(file_.get());
}

void OutputFile::close() {
  bool failed = std::ferror(file_.get()) != 0;
  if (std::fclose(file_.release()) != 0 || failed) throw Error(name_ + " could not be written to its end");
}

Series::Series(const std::string& path) : file_("--series", path), table_(!path.ends_with(".jsonl")) {}

void Series::add(const nlohmann::ordered_json& point) {
  std::string heading, line;
  const nlohmann::ordered_json flat = point.flatten();
  for (const auto& [column, value] : flat.items()) {
    std::string name = column.substr(1);  // as /blocked/0
    std::replace(name.begin(), name.end(), '/', '_');
    heading += (heading.empty() ? "" : ",") + name;
    line += (line.empty() ? "" : ",") + value.dump();
  }
  if (table_ && !begun_) file_.line(heading);
  begun_ = true;
  file_.line(table_ ? line : point.dump());
}

LiveLine::LiveLine(std::string name) : name_(std::move(name)), terminal_(isatty(STDERR_FILENO) == 1) {}

void LiveLine::draw(const Sample& sample) {
  const Progress& at = sample.progress;
  std::string line = app::text("%s  %.4g of %.4g  %.0f %%  %sevents/s", name_.c_str(), at.now, at.end, sample.percent,
                               (short_number(sample.events_per_s) + " ").c_str());
  if (at.windows > 1) line += app::text("  window %.3g", at.window);
  if (at.blocked_s.size() > 1) line += app::text("  blocked %.0f %%", 100 * sample.blocked_share);
  line += "  " + short_bytes(static_cast<double>(at.bytes));
  if (std::isfinite(sample.seconds_to_go)) line += "  " + duration(sample.seconds_to_go) + " to go";
  if (!terminal_) {
    if (last_ >= 0 && at.wall_s < last_ + 1) return;
    last_ = at.wall_s;
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  // A line that wraps could not be overwritten.
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) line = line.substr(0, size.ws_col - 1u);
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void LiveLine::erase() {
  if (drawn_) std::fprintf(stderr, "\r\x1b[K");
  drawn_ = false;
}

Watch::Watch(const std::string& name, const Output& output) : json_(output.live == Live::json) {
  bool shown = output.live == Live::on || (output.live == Live::automatic && !output.quiet && isatty(STDERR_FILENO) == 1);
  if (shown) line_ = std::make_unique<LiveLine>(name);
  if (!output.series.empty()) series_ = std::make_unique<Series>(output.series);
  if (!output.summary.empty()) summary_ = std::make_unique<OutputFile>("--summary", output.summary);
}

void Watch::see(const Progress& progress) {
  last_ = progress;
  Sample sample = meter_.next(progress);
  if (line_) line_->draw(sample);
  record(sample);
}

void Watch::record(const Sample& sample) {
  if (!series_ && !json_) return;
  nlohmann::ordered_json now = point(sample);
  if (series_) series_->add(now);
  if (json_) std::fprintf(stderr, "%s\n", now.dump().c_str());
}

void Watch::finish(const Run& run) {
  const Result& result = run.result;
  Progress whole = last_;
  whole.wall_s = result.wall_s;
  whole.now = result.reached;
  whole.end = result.ended_by_model ? result.reached : run.options.end;
  whole.events = result.events_before;
  whole.windows = result.threads.front().windows;
  whole.blocked_s.clear();
  whole.thread_events.clear();
  for (const Activity& thread : result.threads) {
    whole.events += thread.events;
    whole.blocked_s.push_back(thread.blocked_s);
    whole.thread_events.push_back(thread.events);
  }
  record(meter_.next(whole));
  if (series_) series_->close();
  if (!summary_) return;
  summary_->line(one_line(summary(run)));
  summary_->close();
}

}  // namespace pdes::app
