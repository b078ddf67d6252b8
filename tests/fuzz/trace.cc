// Fuzzer of the reader of traces.  The first byte chooses: the input is a file as it stands; or the events of one, which
// are compressed and given a header that fits, so that what lies behind the checksum is reached; or a .rep file.
//
// What the reader gives its visitor can be relied on: blocks exist and end once.  What it refuses, it refuses with a
// Failure.  A trace that was read and written again reads the same.
#include <unistd.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../lab/native/trace/trace.h"
#include "fuzz.h"

namespace {

using hm::trace::Event;
using hm::trace::Header;

std::filesystem::path file_named(const char* ending) {
  static const std::string base =
      (std::filesystem::temp_directory_path() / "hm_fuzz_trace.").string() + std::to_string(getpid());
  return base + ending;
}

struct Scratch {
  explicit Scratch(const char* ending) : path(file_named(ending)) {}
  ~Scratch() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

// Counts in the header are what the reader compares at the end: taken from the input, small ones.
std::string with_header(fuzz::Stream in) {
  Header header;
  header.threads = in.byte();
  header.mallocs = in.byte();
  header.frees = in.byte();
  header.reallocs = in.byte();
  std::string events;
  while (!in.at_end()) events += static_cast<char>(in.byte());
  std::string room(ZSTD_compressBound(events.size()), 0);
  room.resize(ZSTD_compress(room.data(), room.size(), events.data(), events.size(), 1));
  return "hmalloc trace 1\n" + nlohmann::json(header).dump() + "\n" + room;
}

class Checker {
 public:
  void operator()(const Event& event) {
    if (event.ends()) {
      fuzz::expect(event.ended() < live_.size() && live_[event.ended()], "a block ends that is not there");
      live_[event.ended()] = false;
    }
    if (event.makes()) {
      fuzz::expect(event.block == live_.size(), "a block is made out of turn");
      live_.push_back(true);
    }
    fuzz::expect(events.empty() || event.time >= events.back().time, "time goes back");
    events.push_back(event);
  }
  std::vector<Event> events;

 private:
  std::vector<bool> live_;
};

void expect_same(const Event& a, const Event& b) {
  fuzz::expect(a.kind == b.kind && a.thread == b.thread && a.time == b.time &&
                   (a.kind != hm::trace::Kind::kAligned || a.alignment == b.alignment) && (!a.makes() || a.size == b.size) &&
                   (!a.ends() || a.ended() == b.ended()) && (!a.makes() || a.block == b.block),
               "an event is another one after writing and reading");
}

void write_and_read(const Header& header, const std::vector<Event>& events) {
  Scratch copy(".hmtrace");
  hm::trace::Writer writer;
  for (const Event& event : events) writer.add(event);
  writer.save(copy.path, header);
  Checker again;
  hm::trace::read(copy.path, [&](const Event& event) { again(event); });
  fuzz::expect(again.events.size() == events.size(), "events are lost by writing and reading");
  for (size_t i = 0; i < events.size(); ++i) expect_same(events[i], again.events[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::remember(data, size);
  fuzz::Stream in(data, size);
  unsigned mode = in.byte() % 4;
  const char* rest = reinterpret_cast<const char*>(data) + (size > 0);
  std::string text(rest, size - (size > 0));
  Scratch scratch(mode == 3 ? ".rep" : ".trace");
  write(scratch.path, mode == 1 || mode == 2 ? with_header(in) : text);
  Checker checker;
  Header header;
  try {
    header = hm::trace::read(scratch.path, [&](const Event& event) { checker(event); });
  } catch (const hm::trace::Failure&) { return 0; }
  write_and_read(header, checker.events);
  return 0;
}
