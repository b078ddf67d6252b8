// A log in a pipeline: a reader makes a message of every line, workers parse it, a collector keeps the totals.  No
// message is freed by the thread that allocated it, as in most servers; nothing else is special about it.
//
//   hmalloc-pipeline [LINES [WORKERS]]     a made-up access log (2,000,000); as many workers as CPUs
//
// Plain C++ on any malloc: `hmalloc compare` without a program runs it on the system's malloc and on hmalloc.
#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

// Batches of messages in transit to another thread, a bounded number of them.
template <class Message>
class Channel {
 public:
  using Batch = std::vector<std::unique_ptr<Message>>;
  void send(Batch batch) {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [this] { return waiting_.size() < kMax; });
    waiting_.push_back(std::move(batch));
    changed_.notify_all();
  }
  void close() {
    std::lock_guard guard(lock_);
    closed_ = true;
    changed_.notify_all();
  }
  bool receive(Batch& batch) {  // false: closed, and empty
    std::unique_lock guard(lock_);
    changed_.wait(guard, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return false;
    batch = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    return true;
  }

 private:
  static constexpr std::size_t kMax = 16;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Batch> waiting_;
  bool closed_ = false;
};

struct Line {
  std::string text;
};

struct Request {
  std::string client, path;
  unsigned status;
  std::size_t bytes;
};

constexpr std::size_t kBatch = 512;

std::string line_of(std::uint64_t n) {
  std::uint64_t random = n * 0x9e3779b97f4a7c15u ^ n >> 7;
  char text[160];
  int length =
      std::snprintf(text, sizeof text, "10.%u.%u.%u - - \"GET /item/%u/view/%u HTTP/1.1\" %u %u", unsigned(random >> 8 & 3),
                    unsigned(random >> 16 & 255), unsigned(random >> 24 & 255), unsigned(random >> 32 & 1023),
                    unsigned(random >> 42 & 7), random % 50 == 0 ? 404u : 200u, unsigned(random >> 45 & 0xffff));
  return {text, static_cast<std::size_t>(length)};
}

void read(std::uint64_t lines, Channel<Line>& to) {
  Channel<Line>::Batch batch;
  for (std::uint64_t n = 0; n < lines; ++n) {
    batch.push_back(std::make_unique<Line>(Line{line_of(n)}));
    if (batch.size() == kBatch) to.send(std::exchange(batch, {}));
  }
  to.send(std::move(batch));
  to.close();
}

std::unique_ptr<Request> parse(const std::string& text) {
  auto request = std::make_unique<Request>();
  std::size_t path = text.find("GET ") + 4, end = text.find(' ', path), rest = text.find("\" ", end) + 2;
  request->client = text.substr(0, text.find(' '));
  request->path = text.substr(path, end - path);
  char* after = nullptr;
  request->status = static_cast<unsigned>(std::strtoul(text.c_str() + rest, &after, 10));
  request->bytes = std::strtoul(after, nullptr, 10);
  return request;
}

void work(Channel<Line>& from, Channel<Request>& to) {
  for (Channel<Line>::Batch lines; from.receive(lines);) {
    Channel<Request>::Batch requests;
    for (auto& line : lines) requests.push_back(parse(line->text));
    to.send(std::move(requests));
  }
}

// Any mistake ends the program: one line on standard error, exit status 2.
template <class Number>
Number number(std::string_view text, const char* of, Number least, Number most) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return value;
  std::fprintf(stderr, "hmalloc-pipeline: %s needs a whole number from %s to %s, not '%.*s'\n", of,
               std::to_string(least).c_str(), std::to_string(most).c_str(), static_cast<int>(text.size()), text.data());
  std::exit(2);
}

}  // namespace

int main(int count, char** values) {
  if (count > 3) {
    std::fprintf(stderr, "hmalloc-pipeline: too many arguments: [LINES [WORKERS]]\n");
    return 2;
  }
  std::uint64_t lines = count > 1 ? number<std::uint64_t>(values[1], "LINES", 1, 1'000'000'000'000) : 2'000'000;
  unsigned cpus = std::max(std::thread::hardware_concurrency(), 1u);  // 0: not known
  unsigned workers = count > 2 ? number<unsigned>(values[2], "WORKERS", 1, 1000) : cpus;
  Channel<Line> read_lines;
  Channel<Request> requests;
  std::thread reader([&] { read(lines, read_lines); });
  std::vector<std::thread> crew;
  for (unsigned i = 0; i < workers; ++i) crew.emplace_back([&] { work(read_lines, requests); });
  std::thread closer([&] {
    for (auto& thread : crew) thread.join();
    requests.close();
  });

  std::unordered_map<std::string, std::size_t> bytes_of;
  std::size_t failed = 0, total = 0;
  for (Channel<Request>::Batch batch; requests.receive(batch);)
    for (auto& request : batch) {
      bytes_of[request->path] += request->bytes;
      total += request->bytes;
      failed += request->status != 200;
    }
  reader.join();
  closer.join();
  std::printf("%llu lines, %zu paths, %zu bytes, %zu not found\n", static_cast<unsigned long long>(lines), bytes_of.size(),
              total, failed);
}
