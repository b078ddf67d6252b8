#include "app/summary.h"

#include <cstdlib>

#include "app/common.h"
#include "app/text.h"

namespace pdes::app {

namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

const char* api(Allocator allocator) {
  switch (allocator) {
    case Allocator::hmalloc: return "explicit";
    case Allocator::malloc: return "malloc";
    case Allocator::free_list: break;
  }
  return "free-list";
}

Json quantiles(const Report::Number& number) {
  Json all = Json::object();
  for (const char* q : {"0.01", "0.1", "0.25", "0.5", "0.75", "0.9", "0.99", "0.999"}) {
    if (number.count > 0) all[q] = number.quantile(std::strtod(q, nullptr));
  }
  return all;
}

Json statistics(const Report& report) {
  Json all = Json::object();
  for (const Report::Number& number : report.numbers()) {
    switch (number.kind) {
      case Report::Number::Kind::count: all[number.name] = number.count; break;
      case Report::Number::Kind::sum: all[number.name] = number.sum.value(); break;
      case Report::Number::Kind::tally:  // extremes of nothing are infinite, and null in JSON
        all[number.name] = {{"count", number.count},
                            {"mean", number.mean()},
                            {"sum", number.sum.value()},
                            {"least", number.least},
                            {"most", number.most}};
        break;
      case Report::Number::Kind::level:
        all[number.name] = {
            {"mean", number.mean()}, {"time", number.second.value()}, {"least", number.least}, {"most", number.most}};
        break;
      case Report::Number::Kind::histogram:
        all[number.name] = {{"count", number.count},
                            {"mean", number.mean()},
                            {"least", number.least},
                            {"most", number.most},
                            {"quantiles", quantiles(number)}};
        break;
      case Report::Number::Kind::interval:
        all[number.name] = {{"mean", number.mean()},
                            {"half_width", number.half_width()},
                            {"confidence", 0.95},
                            {"batches", number.count},
                            {"batch_size", number.batch_size}};
    }
  }
  return all;
}

Json activities(const std::vector<Activity>& threads) {
  Json all = Json::array();
  for (const Activity& thread : threads)
    all.push_back({{"events", thread.events},
                   {"sent", thread.sent},
                   {"crossed", thread.crossed},
                   {"dropped", thread.dropped},
                   {"windows", thread.windows},
                   {"working_s", thread.working_s},
                   {"blocked_s", thread.blocked_s},
                   {"late", thread.late},
                   {"retunings", thread.retunings},
                   {"parted", thread.parted},
                   {"emigrated", thread.emigrated}});
  return all;
}

Json links(const Delays& seen) {
  Json all = Json::array();
  for (const Delays::Link& link : seen.links)
    all.push_back({{"from", link.from},
                   {"to", link.to},
                   {"event", link.event},
                   {"count", link.count},
                   {"smallest", link.smallest},
                   {"suggested_lookahead", suggested_lookahead(link.smallest)}});
  return all;
}

Json delays(const Delays& seen) {
  return {{"count", seen.count},
          {"smallest", seen.smallest},
          {"mean", seen.mean},
          {"largest", seen.largest},
          {"percentiles", {{"1", seen.percentile(1)}, {"50", seen.percentile(50)}, {"99", seen.percentile(99)}}},
          {"links", links(seen)},
          {"suggested_lookahead", suggested_lookahead(seen.smallest)}};
}

void add_options(Json& line, const Run& run) {
  const Options& options = run.options;
  line["end"] = options.end;
  line["lookahead"] = options.lookahead;
  line["seed"] = options.seed;
  line["threads"] = options.threads;
  line["ranks"] = run.ranks;
  line["allocator"] = name_of(kAllocators, options.allocator);
  line["api"] = api(options.allocator);
  line["blocks"] = run.result.blocks;
  line["queue"] = name_of(kQueues, options.queue);
  line["sync"] = name_of(kSyncs, options.sync);
  line["generator"] = name_of(kGenerators, options.generator);
  line["ties"] = name_of(kTies, options.ties);
  line["partition"] = name_of(kPartitionings, options.partitioning);
  line["balance"] = name_of(kBalances, options.balance);
  line["balance_by"] = name_of(kBalancesBy, options.balance_by);
  line["gather"] = name_of(kGathers, options.gather);
}

void add_cost(Json& line, const Run& run) {
  const Activity& total = run.result.total;
  line["blocked_share"] = ratio(total.blocked_s, total.blocked_s + total.working_s);
  line["peak_bytes"] = run.result.peak_bytes;
  line["peak_pending"] = run.result.peak_pending;
  line["bytes_per_pending"] =
      ratio(static_cast<double>(run.result.peak_bytes), static_cast<double>(run.result.peak_pending));
  line["vm_hwm_kb"] = run.process.vm_hwm_kb;
  line["vm_peak_kb"] = run.process.vm_peak_kb;
  line["minor_faults"] = run.process.minor_faults;
  line["cpu_share"] = run.cpu_share;
  line["malloc_library"] = run.process.malloc_library;
}

}  // namespace

Json summary(const Run& run) {
  const Result& result = run.result;
  const Activity& total = result.total;
  auto events = static_cast<double>(total.events);
  Json line{{"model", run.model}};
  if (!run.error.empty()) line["error"] = run.error;
  line["digest"] = app::text("0x%016llx", static_cast<unsigned long long>(result.digest));
  line["events"] = total.events;
  line["seconds"] = result.wall_s;
  line["events_per_s"] = ratio(events, result.wall_s);
  line["ns_per_op"] = ratio(1e9 * result.wall_s, events);
  line["ops"] = total.events;
  line["events_before"] = result.events_before;
  line["checkpoints"] = result.checkpoints;
  line["reached"] = result.reached;
  line["stopped"] = result.stopped;
  line["ended_by_model"] = result.ended_by_model;
  add_options(line, run);
  line["windows"] = total.windows;
  line["gathered"] = result.gathered;
  line["sent"] = total.sent;
  line["crossed"] = total.crossed;
  line["dropped"] = total.dropped;
  line["cancelled"] = total.cancelled;
  line["made"] = total.made;
  line["ended"] = total.ended;
  line["undelivered"] = total.undelivered;
  line["late"] = total.late;
  line["retunings"] = total.retunings;
  line["parted"] = total.parted;
  line["emigrated"] = total.emigrated;
  line["bucket_width"] = result.bucket_width;
  add_cost(line, run);
  for (std::size_t type = 0; type < result.events_by_type.size(); ++type) {
    Json& count = line["events_by_type"][result.type_names.at(type)];  // of two types, if their names differ in scope alone
    count = result.events_by_type[type] + (count.is_null() ? 0 : count.get<std::uint64_t>());
  }
  line["statistics"] = statistics(result.statistics);
  line["derived"] = Json::object();
  for (const auto& [name, value] : run.derived.numbers()) line["derived"][name] = value;
  line["model_parameters"] = run.parameters;
  line["thread_activity"] = activities(result.threads);
  line["waited_on"] = result.waited_on;
  if (!run.options.trace.empty()) line["trace_lost"] = result.trace_lost;
  if (run.options.measure_delays) line["delays"] = delays(result.delays);
  if (run.options.measure_path)
    line["critical_path"] = {
        {"events", result.path.events}, {"parallelism", result.path.parallelism}, {"last", result.path.last}};
  return line;
}

}  // namespace pdes::app
