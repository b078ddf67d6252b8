#include "trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace hm::trace {
namespace {

constexpr const char* kFirstLine = "hmalloc trace ";
constexpr int kVersion = 1;
constexpr uint8_t kKindBits = 0x07;
constexpr uint8_t kOtherThread = 0x08;  // a thread other than the event before's; its number follows
constexpr size_t kBatch = 1 << 20;
constexpr size_t kLongestLine = 1 << 20;

std::string reason() { return std::strerror(errno); }

// The bytes behind the two lines, decompressed on demand.
class Inflater {
 public:
  Inflater(std::ifstream& file, const std::string& name) : file_(file), name_(name), in_(kBatch), out_(kBatch) {}

  bool at_end() { return next_ == end_ && !fill(); }

  uint8_t byte() {
    if (at_end()) throw Failure(name_ + ": truncated: events are missing");
    return static_cast<uint8_t>(out_[next_++]);
  }

  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      uint8_t part = byte();
      value |= uint64_t{part & 0x7fu} << shift;
      if (part < 0x80) return value;
    }
    throw Failure(name_ + ": damaged: a number without an end");
  }

 private:
  bool fill() {
    next_ = end_ = 0;
    while (end_ == 0 && !is_complete_) {
      if (input_.pos == input_.size) {
        file_.read(in_.data(), static_cast<std::streamsize>(in_.size()));
        input_ = {in_.data(), static_cast<size_t>(file_.gcount()), 0};
        if (input_.size == 0) throw Failure(name_ + ": truncated: the file ends in the middle of its events");
      }
      ZSTD_outBuffer output{out_.data(), out_.size(), 0};
      size_t left = ZSTD_decompressStream(zstd_.get(), &output, &input_);
      if (ZSTD_isError(left) != 0) throw Failure(name_ + ": damaged: " + ZSTD_getErrorName(left));
      is_complete_ = left == 0;
      end_ = output.pos;
    }
    return end_ != 0;
  }

  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::ifstream& file_;
  const std::string& name_;
  std::unique_ptr<ZSTD_DCtx, Free> zstd_{ZSTD_createDCtx()};
  std::vector<char> in_, out_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  size_t next_ = 0, end_ = 0;
  bool is_complete_ = false;
};

class Decoder {
 public:
  Decoder(Inflater& in, const Header& header, const std::string& name) : in_(in), header_(header), name_(name) {}

  Event next() {
    uint8_t tag = in_.byte();
    uint8_t kind = tag & kKindBits;
    check(kind < kKinds && (tag & ~(kKindBits | kOtherThread)) == 0);
    last_.kind = Kind{kind};
    uint64_t thread = (tag & kOtherThread) != 0 ? in_.number() : last_.thread, before = last_.time;
    check(thread < header_.threads);
    last_.thread = static_cast<uint32_t>(thread);
    last_.time += in_.number();
    check(last_.time >= before);
    if (last_.kind == Kind::kFree) last_.block = take(in_.number());
    if (last_.kind == Kind::kRealloc) last_.old = take(in_.number());
    if (last_.makes()) {
      last_.size = in_.number();
      last_.alignment = last_.kind == Kind::kAligned ? in_.byte() : 0;
      check(last_.alignment < 48);
      last_.block = is_live_.size();
      is_live_.push_back(true);
    }
    return last_;
  }

 private:
  uint64_t take(uint64_t ago) {
    check(ago >= 1 && ago <= is_live_.size() && is_live_[is_live_.size() - ago]);
    is_live_[is_live_.size() - ago] = false;
    return is_live_.size() - ago;
  }
  void check(bool holds) const {
    if (!holds) throw Failure(name_ + ": damaged: an event that cannot be");
  }

  Inflater& in_;
  const Header& header_;
  const std::string& name_;
  std::vector<bool> is_live_;
  Event last_;
};

std::string line(std::ifstream& file, const std::string& name) {
  std::string text;
  for (char letter; text.size() < kLongestLine && file.get(letter);) {
    if (letter == '\n') return text;
    text += letter;
  }
  throw Failure(name + ": truncated: it ends in its first lines");
}

Header read_header(std::ifstream& file, const std::string& name) {
  std::string version = line(file, name).substr(std::strlen(kFirstLine));
  if (version != std::to_string(kVersion)) {
    throw Failure(name + ": a trace of version " + version + ", but this program reads version " + std::to_string(kVersion) +
                  ": record it again");
  }
  try {
    auto header = nlohmann::json::parse(line(file, name));
    // The library would convert a number out of range, which is undefined.
    for (const auto& value : header)
      if (value.is_number_float()) throw Failure(name + ": damaged: a number of its second line is not whole");
    return header.get<Header>();
  } catch (const nlohmann::json::exception&) { throw Failure(name + ": damaged: its second line is no header"); }
}

bool begins_with(std::ifstream& file, const char* text) {
  std::string begin(std::strlen(text), 0);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  file.clear();
  file.seekg(0);
  return begin == text;
}

}  // namespace

void count(Header& header, const Event& event) {
  header.threads = std::max(header.threads, event.thread + 1);
  header.duration = event.time;
  if (event.makes()) header.requested += event.size;
  switch (event.kind) {
    case Kind::kFree: ++header.frees; break;
    case Kind::kRealloc: ++header.reallocs; break;
    default: ++header.mallocs;
  }
}

void Writer::put(uint64_t number) {
  for (; number >= 0x80; number >>= 7) pending_ += static_cast<char>(number | 0x80);
  pending_ += static_cast<char>(number);
}

void Writer::add(const Event& event) {
  bool is_other = event.thread != last_.thread;
  pending_ += static_cast<char>(static_cast<uint8_t>(event.kind) | (is_other ? kOtherThread : 0));
  if (is_other) put(event.thread);
  put(event.time - last_.time);
  if (event.ends()) put(made_ - event.ended());
  if (event.makes()) {
    put(event.size);
    ++made_;
  }
  if (event.kind == Kind::kAligned) pending_ += static_cast<char>(event.alignment);
  last_ = event;
  if (pending_.size() >= kBatch) compress(ZSTD_e_continue);
}

void Writer::compress(ZSTD_EndDirective how) {
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_inBuffer input{pending_.data(), pending_.size(), 0};
  std::string room(ZSTD_CStreamOutSize(), 0);
  for (size_t left = 1; left != 0 || input.pos < input.size;) {
    ZSTD_outBuffer output{room.data(), room.size(), 0};
    left = ZSTD_compressStream2(zstd_.get(), &output, &input, how);
    if (ZSTD_isError(left) != 0) throw Failure(std::string("compressing: ") + ZSTD_getErrorName(left));
    compressed_.append(room, 0, output.pos);
    if (how == ZSTD_e_continue && input.pos == input.size) break;
  }
  pending_.clear();
}

uint64_t Writer::save(const std::filesystem::path& path, const Header& header) {
  compress(ZSTD_e_end);
  std::filesystem::path unfinished = path;
  unfinished += ".unfinished";  // it gets its own name once it is complete
  std::ofstream file(unfinished, std::ios::binary);
  file << kFirstLine << kVersion << '\n'
       << nlohmann::json(header).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n'
       << compressed_;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (!file || error) {
    std::string why = error ? error.message() : reason();
    std::filesystem::remove(unfinished, error);
    throw Failure(path.string() + ": cannot be written: " + why);
  }
  return std::filesystem::file_size(path);
}

Header read(const std::filesystem::path& path, const Visitor& visit) {
  const std::string name = path.string();
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(name + ": " + reason());
  if (std::filesystem::is_directory(path)) throw Failure(name + ": is a folder");
  if (!begins_with(file, kFirstLine)) {
    int first = file.peek();
    if (path.extension() == ".rep" || (first >= '0' && first <= '9')) return read_rep(path, visit);
    throw Failure(name + ": not a trace");
  }
  Header header = read_header(file, name);
  Header counted;
  Inflater inflater(file, name);
  Decoder decoder(inflater, header, name);
  while (!inflater.at_end()) {
    Event event = decoder.next();
    count(counted, event);
    visit(event);
  }
  if (counted.mallocs != header.mallocs || counted.frees != header.frees || counted.reallocs != header.reallocs) {
    throw Failure(name + ": damaged: its events are not those that its header counts");
  }
  return header;
}

}  // namespace hm::trace
