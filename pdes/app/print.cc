// The summary for people.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "app/common.h"
#include "app/summary.h"
#include "app/text.h"

namespace pdes::app {

namespace {

constexpr double kLittle = 20;  // events of a window for each thread: a barrier takes as long

class Page {
 public:
  explicit Page(std::FILE* to) : to_(to) {}
  void line(const std::string& text) { std::fprintf(to_, "%s\n", text.c_str()); }
  void row(const std::string& name, const std::string& value) {
    std::fprintf(to_, "  %-*s  %s\n", width_, name.c_str(), value.c_str());
  }
  void width(std::size_t most) { width_ = static_cast<int>(most); }

 private:
  std::FILE* to_;
  int width_ = 18;
};

std::string several(std::uint64_t number, const char* one, const std::string& more) {
  return grouped(number) + " " + (number == 1 ? one : more);
}
std::string several(std::uint64_t number, const char* one) { return several(number, one, one + std::string("s")); }

double share(double part, double rest) { return part + rest > 0 ? 100 * part / (part + rest) : 0; }

std::string how(const Run& run) {
  const Options& options = run.options;
  std::string text = several(options.threads, "thread");
  if (options.threads < run.asked_threads)
    text += " (" + std::to_string(run.asked_threads) + " asked for, but no more CPUs; --oversubscribe starts them)";
  if (run.ranks > 1) text = std::to_string(run.ranks) + " ranks of " + text;
  text += ", " + name_of(kSyncs, options.sync) + ", " + name_of(kQueues, options.queue) + ", " +
          name_of(kAllocators, options.allocator);
  if (options.allocator == Allocator::hmalloc) text += " (" + run.result.blocks + ")";
  return text + ", seed " + std::to_string(options.seed);
}

void print_events(Page& page, const Run& run) {
  const Result& result = run.result;
  const Activity& total = result.total;
  page.row("events", grouped(total.events) + " executed, " + grouped(total.sent) + " for other LPs, " +
                         grouped(total.crossed) + " across threads, " + grouped(total.dropped) + " dropped at the end");
  if (total.cancelled > 0) page.row("  cancelled", grouped(total.cancelled));
  if (total.undelivered > 0) page.row("  undelivered", grouped(total.undelivered) + ", nobody was there for them");
  if (!run.options.resume.empty()) page.row("  before", grouped(result.events_before) + ", in the checkpoint");
  if (std::ranges::count_if(result.events_by_type, [](std::uint64_t count) { return count > 0; }) > 1)
    for (std::size_t type = 0; type < result.events_by_type.size(); ++type)
      if (result.events_by_type[type] > 0) page.row("  " + result.type_names.at(type), grouped(result.events_by_type[type]));
  if (run.options.queue == Queue::wheel && total.events > 0)
    page.row("late",
             app::text("%.1f %% of events, bucket width %.3g",
                       100 * static_cast<double>(total.late) / static_cast<double>(total.events), result.bucket_width));
}

void print_lps(Page& page, const Activity& total) {
  if (total.made == 0) return;
  page.row("LPs", grouped(total.made) + " made, " + grouped(total.ended) + " ended, " + grouped(total.made - total.ended) +
                      " there at the end");
}

void print_threads(Page& page, const Run& run) {
  const Result& result = run.result;
  const unsigned workers = run.options.threads * run.ranks;
  if (result.total.windows > 0 && workers > 1 && run.options.sync == Sync::windows) {
    const auto windows = static_cast<double>(result.total.windows);
    const double events = static_cast<double>(result.total.events - result.events_before) / windows;
    const std::string of = events < 100 ? app::text("%.3g", events) : grouped(static_cast<std::uint64_t>(events));
    page.row("windows", grouped(result.total.windows) + " of " + of + " events, " +
                            app::text("%.3g long on average", result.reached / windows) +
                            (result.gathered > 0 ? "; one thread executed " + grouped(result.gathered) + " for all" : ""));
    if (events < kLittle * workers) page.row("", app::text("that is little for %u threads: one may be faster", workers));
  }
  if (result.total.parted > 0)
    page.row("balance", several(result.total.parted, "LP") + " moved to other threads" +
                            (result.total.emigrated > 0 ? ", " + grouped(result.total.emigrated) + " to other ranks" : ""));
  if (result.threads.size() < 2 && run.ranks < 2) return;
  for (std::size_t i = 0; i < result.threads.size(); ++i) {
    const Activity& thread = result.threads[i];
    page.row("thread " + std::to_string(i) + (run.ranks > 1 ? " of rank 0" : ""),
             app::text("%s events, working %.0f %%, blocked %.0f %%", grouped(thread.events).c_str(),
                       share(thread.working_s, thread.blocked_s), share(thread.blocked_s, thread.working_s)));
  }
}

void print_memory(Page& page, const Run& run) {
  const Result& result = run.result;
  auto bytes = static_cast<double>(result.peak_bytes);
  std::string text = short_bytes(bytes) + " at most";
  if (result.peak_pending > 0)
    text += " for " + grouped(result.peak_pending) + " pending events, " +
            app::text("%.0f", bytes / static_cast<double>(result.peak_pending)) + " bytes per pending event";
  page.row("memory", text);
  page.row("", short_bytes(1024.0 * static_cast<double>(run.process.vm_hwm_kb)) + " the whole process at most" +
                   (run.ranks > 1 ? " (rank 0)" : ""));
}

std::string shown(const Report::Number& number) {
  switch (number.kind) {
    case Report::Number::Kind::count: return std::to_string(number.count);
    case Report::Number::Kind::sum: return app::text("%.6g", number.sum.value());
    case Report::Number::Kind::level:
      return app::text("mean over time %.6g, from %.6g to %.6g", number.mean(), number.least, number.most);
    case Report::Number::Kind::interval:
      if (number.count < 2) return "too few batches of " + grouped(number.batch_size) + ": " + std::to_string(number.count);
      return app::text("%.6g, within %.3g with 95 %% confidence; %s of %s", number.mean(), number.half_width(),
                       several(static_cast<std::uint64_t>(number.count), "batch", "batches").c_str(),
                       grouped(number.batch_size).c_str());
    case Report::Number::Kind::tally:
    case Report::Number::Kind::histogram: break;
  }
  if (number.count == 0) return "none";
  std::string text = app::text("%s: mean %.6g, from %.6g to %.6g", std::to_string(number.count).c_str(), number.mean(),
                               number.least, number.most);
  if (number.kind == Report::Number::Kind::histogram)
    text +=
        app::text("; 50, 90, 99 %%: %.3g, %.3g, %.3g", number.quantile(0.5), number.quantile(0.9), number.quantile(0.99));
  return text;
}

void print_files(Page& page, const Run& run) {
  const Result& result = run.result;
  if (!run.options.checkpoint.empty())
    page.row("checkpoints", grouped(result.checkpoints) + (result.checkpoints > 0 ? ", in " + run.options.checkpoint : ""));
  if (result.trace_lost > 0) page.row("trace", "lacks the first " + several(result.trace_lost, "span"));
}

void print_statistics(Page& page, const Run& run) {
  const auto& numbers = run.result.statistics.numbers();
  const auto& derived = run.derived.numbers();
  if (numbers.empty() && derived.empty()) return;
  std::size_t widest = 18;
  for (const auto& number : numbers) widest = std::max(widest, number.name.size());
  for (const auto& [name, value] : derived) widest = std::max(widest, name.size());
  page.width(widest);
  page.line("statistics");
  for (const auto& number : numbers) page.row(number.name, shown(number));
  for (const auto& [name, value] : derived) page.row(name, app::text("%.6g", value));
}

void print_delays(Page& page, const Run& run) {
  const Delays& seen = run.result.delays;
  page.line("delays of events between LPs");
  if (seen.count == 0) return page.line("  none: no LP sent another one anything, any lookahead would do");
  page.row("seen", grouped(seen.count));
  page.row("smallest", app::text("%g", seen.smallest));
  page.row("mean", app::text("%g", seen.mean));
  page.row("1, 50, 99 %", app::text("below %.3g, %.3g, %.3g", seen.percentile(1), seen.percentile(50), seen.percentile(99)));
  page.row("largest", app::text("%g", seen.largest));
  constexpr std::size_t kMostLinks = 8;
  for (std::size_t i = 0; i < std::min(seen.links.size(), kMostLinks); ++i) {
    const Delays::Link& link = seen.links[i];
    page.row(i == 0 ? "by link" : "", app::text("%g and more, from %s to %s, %s of %s", link.smallest, link.from.c_str(),
                                                link.to.c_str(), grouped(link.count).c_str(), link.event.c_str()));
  }
  if (!(seen.smallest > 0)) return page.line("  There is no lookahead: some events take no time to another LP.");
  page.line(app::text("  Try --lookahead %g.  A smallest delay that was seen is no proof: the model must guarantee it.",
                      suggested_lookahead(seen.smallest)));
  if (seen.links.size() > 1 && seen.links[1].smallest > seen.links[0].smallest)
    page.line(app::text("  Without the first link it could be %g.", suggested_lookahead(seen.links[1].smallest)));
}

void print_path(Page& page, const Path& path) {
  page.row("longest chain", path.events == 0 ? "none: nothing was executed"
                                             : several(path.events, "event") + " to " + path.last +
                                                   app::text(": at most %.3g threads can be busy", path.parallelism));
}

}  // namespace

void print_summary(const Run& run, std::FILE* to) {
  const Result& result = run.result;
  Page page(to);
  auto events = static_cast<double>(result.total.events);
  std::string rate = result.wall_s > 0 ? ", " + short_number(events / result.wall_s) + " events/s" : "";
  std::string seconds = app::text("%.3g s", result.wall_s);
  page.line(run.model + ": " + grouped(result.total.events) + " events in " + seconds + rate);
  std::string early = !run.error.empty()      ? ", the run failed"
                      : result.stopped        ? ", stopped early"
                      : result.ended_by_model ? ", ended by the model"
                                              : "";
  page.row("virtual time", app::text("%.6g of %.6g", result.reached, run.options.end) + early);
  // The digest of a failed run depends on how far each thread was.
  if (run.error.empty()) page.row("digest", app::text("0x%016llx", static_cast<unsigned long long>(result.digest)));
  page.row("how", how(run));
  print_events(page, run);
  print_lps(page, run.result.total);
  print_threads(page, run);
  print_memory(page, run);
  print_files(page, run);
  print_statistics(page, run);
  if (run.options.measure_delays) print_delays(page, run);
  if (run.options.measure_path) print_path(page, result.path);
}

}  // namespace pdes::app
