#include "introspect/stats.h"

#include <cerrno>

#include "base/process.h"
#include "introspect/census.h"
#include "threads/registry.h"

namespace hm {
namespace {

enum class Kind : uint8_t { kBytes, kNumber, kBytesSoFar, kNumberSoFar };
struct Metric {
  const char* name;
  Kind kind;
  const char* meaning;
};
struct Row {
  Metric metric;
  uint64_t hm_stats::* field;
};
constexpr Row kRows[] = {
    {{"allocated", Kind::kBytes, "held by the program"}, &hm_stats::allocated},
    {{"cached", Kind::kBytes, "waiting in block caches"}, &hm_stats::cached},
    {{"active", Kind::kBytes, "superblocks and large blocks in use"}, &hm_stats::active},
    {{"resident", Kind::kBytes, "active, metadata, freed and not yet given back"}, &hm_stats::resident},
    {{"retained", Kind::kBytes, "mapped and unused"}, &hm_stats::retained},
    {{"mapped", Kind::kBytes, "address space"}, &hm_stats::mapped},
    {{"metadata", Kind::kBytes, "descriptors, states, heaps"}, &hm_stats::metadata},
    {{"peak_active", Kind::kBytes, "largest active so far, slices and huge blocks each at their peak"},
     &hm_stats::peak_active},
    {{"bound", Kind::kBytes, "most that is kept beyond the program's peak"}, &hm_stats::bound},
    {{"purged", Kind::kBytesSoFar, "given back so far"}, &hm_stats::purged},
    {{"cross_thread_frees", Kind::kNumberSoFar, "blocks, seen when caches were flushed"}, &hm_stats::cross_thread_frees},
    {{"refills", Kind::kNumberSoFar, "of block caches"}, &hm_stats::refills},
    {{"flushes", Kind::kNumberSoFar, "of block caches"}, &hm_stats::flushes},
    {{"os_calls", Kind::kNumberSoFar, "mmap, munmap, mremap, madvise, mprotect"}, &hm_stats::os_calls},
};

// Without the registry's lock: a pipe may be full until a thread has read it, and that may be about to get its heap.
template <class Visit>
void for_each_heap(Visit visit) noexcept {
  for (ThreadHeap* heap = registry.newest(); heap != nullptr; heap = heap->next) visit(*heap, registry.is_live(*heap));
}

uint64_t cached_bytes(const ThreadHeap& heap) noexcept {
  uint64_t bytes = 0;
  for (size_t c = 0; c < kClasses && !heap.shelf.stranded; ++c) bytes += heap.cached_blocks(c) * kClassSize[c];
  return bytes;
}

void print_text(FdWriter& text, const Census& census) noexcept {
  text << "hmalloc " << HM_VERSION_STRING << " statistics of process " << uint64_t{id_of_process()} << " ("
       << program_invocation_short_name << "), bytes, except counts\n";
  for (const Row& row : kRows)
    text.padded(census.total.*row.field, 16) << "  " << row.metric.name << ": " << row.metric.meaning << "\n";
  text.padded(census.total.heaps, 16) << "  heaps, " << uint64_t{census.total.live_heaps} << " of them live\n";
  text.padded(census.large_bytes, 16) << "  in " << census.large_blocks << " large blocks\n";
  text << "      class  superblocks    allocated       cached\n";
  for (size_t c = 0; c < kClasses; ++c) {
    const ClassGauges& g = census.classes[c];
    if (g.superblocks == 0) continue;
    text.padded(kClassSize[c], 11).padded(g.superblocks, 13);
    text.padded(g.held_blocks - std::min(g.held_blocks, g.cached_blocks), 13).padded(g.cached_blocks, 13) << "\n";
  }
  text << "       heap       cached      refills      flushes  cross frees\n";
  for_each_heap([&](ThreadHeap& heap, bool live) {
    text.padded(heap.id, 11).padded(cached_bytes(heap), 13).padded(heap.refills.get(), 13).padded(heap.flushes.get(), 13);
    text.padded(heap.cross_thread_frees.get(), 13) << (live ? "\n" : "  (no thread)\n");
  });
}

// A file name may contain any bytes; those that are not plain ASCII are written as if they were Latin-1.
void print_json_string(FdWriter& text, const char* bytes) noexcept {
  text << "\"";
  for (; *bytes != '\0'; ++bytes) {
    auto byte = static_cast<unsigned char>(*bytes);
    if (byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\') text.put(*bytes);
    else (text << "\\u00").put("0123456789abcdef"[byte >> 4]).put("0123456789abcdef"[byte & 15]);
  }
  text << "\"";
}

void print_json(FdWriter& text, const Census& census) noexcept {
  text << "{\"schema\":1,\"version\":\"" << HM_VERSION_STRING << "\",\"pid\":" << uint64_t{id_of_process()}
       << ",\"program\":";
  print_json_string(text, program_invocation_short_name);
  for (const Row& row : kRows) text << ",\"" << row.metric.name << "\":" << census.total.*row.field;
  text << ",\"heaps\":" << uint64_t{census.total.heaps} << ",\"live_heaps\":" << uint64_t{census.total.live_heaps};
  text << ",\"large_blocks\":" << census.large_blocks << ",\"large_bytes\":" << census.large_bytes;
  text << ",\"classes\":[";
  const char* comma = "";
  for (size_t c = 0; c < kClasses; ++c) {
    const ClassGauges& g = census.classes[c];
    if (g.superblocks == 0) continue;
    text << comma << "{\"size\":" << uint64_t{kClassSize[c]} << ",\"superblocks\":" << g.superblocks
         << ",\"held_blocks\":" << g.held_blocks << ",\"cached_blocks\":" << g.cached_blocks << "}";
    comma = ",";
  }
  text << "],\"threads\":[";
  comma = "";
  for_each_heap([&](ThreadHeap& heap, bool live) {
    text << comma << "{\"heap\":" << uint64_t{heap.id} << ",\"live\":" << (live ? "true" : "false")
         << ",\"cached\":" << cached_bytes(heap) << ",\"refills\":" << heap.refills.get()
         << ",\"flushes\":" << heap.flushes.get() << ",\"cross_thread_frees\":" << heap.cross_thread_frees.get() << "}";
    comma = ",";
  });
  text << "]}\n";
}

// OpenMetrics 1.0, but only what the older text format of Prometheus knows too, which takes the rest for comments.
class MetricsText {
 public:
  explicit MetricsText(FdWriter& text) noexcept : text_(text) {}
  void begin(const char* prefix, const Metric& metric) noexcept {
    prefix_ = prefix, metric_ = &metric;
    text_ << "# TYPE ", name() << (is_counter() ? " counter\n" : " gauge\n");
    if (is_in_bytes()) text_ << "# UNIT ", name() << " bytes\n";
    text_ << "# HELP ", name() << " " << metric.meaning << "\n";
  }
  // Every one says whose it is, for whoever collects the files of several processes.
  void add(uint64_t value, const char* label = nullptr, uint64_t label_value = 0) noexcept {
    name() << (is_counter() ? "_total{" : "{");
    if (label != nullptr) text_ << label << "=\"" << label_value << "\",";
    text_ << "pid=\"" << uint64_t{id_of_process()} << "\",program=\"";
    put_label(program_invocation_short_name);
    text_ << "\"} " << value << "\n";
  }

 private:
  bool is_counter() const noexcept { return metric_->kind == Kind::kBytesSoFar || metric_->kind == Kind::kNumberSoFar; }
  bool is_in_bytes() const noexcept { return metric_->kind == Kind::kBytes || metric_->kind == Kind::kBytesSoFar; }
  FdWriter& name() noexcept { return text_ << "hmalloc_" << prefix_ << metric_->name << (is_in_bytes() ? "_bytes" : ""); }
  // In UTF-8, as if the bytes were Latin-1 (above).  Of what is no character only a line's end can be written; and some readers
  // take others for one.
  void put_label(const char* bytes) noexcept {
    for (; *bytes != '\0'; ++bytes) {
      auto byte = static_cast<unsigned char>(*bytes);
      if (byte >= 0x80) text_.put(static_cast<char>(0xc0 | byte >> 6)).put(static_cast<char>(0x80 | (byte & 0x3f)));
      else if (byte == '\n') text_ << "\\n";
      else if (byte < ' ' || byte == 0x7f) text_.put('?');
      else (byte == '"' || byte == '\\' ? text_.put('\\') : text_).put(*bytes);
    }
  }
  FdWriter& text_;
  const char* prefix_ = "";
  const Metric* metric_ = nullptr;
};

// A series for each heap costs whoever stores it: there may be thousands, and those of the first threads last longest.
constexpr uint32_t kHeapsInMetrics = 64;

void print_metrics(FdWriter& text, const Census& census) noexcept {
  MetricsText metrics(text);
  auto one = [&](const Metric& metric, uint64_t value) { metrics.begin("", metric), metrics.add(value); };
  auto of_classes = [&](const Metric& metric, uint64_t ClassGauges::* field) {
    metrics.begin("class_", metric);
    for (size_t c = 0; c < kClasses; ++c)
      if (census.classes[c].superblocks > 0) metrics.add(census.classes[c].*field, "class", kClassSize[c]);
  };
  auto of_heaps = [&](const Metric& metric, auto value) {
    metrics.begin("heap_", metric);
    for_each_heap([&](ThreadHeap& heap, bool) {
      if (heap.id < kHeapsInMetrics) metrics.add(value(heap), "heap", heap.id);
    });
  };
  for (const Row& row : kRows) one(row.metric, census.total.*row.field);
  one({"heaps", Kind::kNumber, "of threads"}, census.total.heaps);
  one({"live_heaps", Kind::kNumber, "that have a thread now"}, census.total.live_heaps);
  one({"large_blocks", Kind::kNumber, "of 32 KB to 1 MB"}, census.large_blocks);
  one({"large", Kind::kBytes, "in blocks of 32 KB to 1 MB"}, census.large_bytes);
  of_classes({"superblocks", Kind::kNumber, "of the class"}, &ClassGauges::superblocks);
  of_classes({"held_blocks", Kind::kNumber, "held by the program or a cache"}, &ClassGauges::held_blocks);
  of_classes({"cached_blocks", Kind::kNumber, "waiting in block caches"}, &ClassGauges::cached_blocks);
  of_heaps({"cached", Kind::kBytes, "waiting in its block caches"}, cached_bytes);
  of_heaps({"refills", Kind::kNumberSoFar, "of its block caches"}, [](ThreadHeap& heap) { return heap.refills.get(); });
  of_heaps({"flushes", Kind::kNumberSoFar, "of its block caches"}, [](ThreadHeap& heap) { return heap.flushes.get(); });
  of_heaps({"cross_thread_frees", Kind::kNumberSoFar, "by its thread, of other heaps' blocks"},
           [](ThreadHeap& heap) { return heap.cross_thread_frees.get(); });
  text << "# EOF\n";
}

}  // namespace

void gather(hm_stats& out) noexcept { out = take_census().total; }

void print_stats(FdWriter& out, int form) noexcept {
  Census census = take_census();
  if (form == HM_STATS_TEXT) print_text(out, census);
  else if (form == HM_STATS_OPENMETRICS) print_metrics(out, census);
  else print_json(out, census);
}

}  // namespace hm
