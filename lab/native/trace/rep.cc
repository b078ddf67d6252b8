// The .rep format of the malloc lab: four numbers (suggested heap size, identifiers, operations, weight), then a line
// for each operation: `a ID SIZE` allocates, `r ID SIZE` reallocates, `f ID` frees; ID -1 is the null pointer.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "trace.h"

namespace hm::trace {
namespace {

class RepReader {
 public:
  RepReader(const std::filesystem::path& path, const Visitor& visit) : name_(path.string()), visit_(visit), file_(path) {
    if (!file_) throw Failure(name_ + ": " + std::strerror(errno));
    header_.program = path.filename().string();
    header_.unit = "operations";
    header_.threads = 1;
  }

  Header read() {
    uint64_t promised = 0;
    for (int field = 0; field < 4; ++field) {
      std::istringstream words = next_line();
      uint64_t number = number_in(words, "a number of the header");
      if (field == 2) promised = number;
      end_of(words);
    }
    for (uint64_t done = 0; done < promised; ++done) operation(next_line());
    while (std::getline(file_, text_)) {
      ++line_;
      if (text_.find_first_not_of(" \t\r") != std::string::npos) fail("more operations than the header promises");
    }
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Failure(name_ + ": line " + std::to_string(line_) + ": " + what);
  }

  // The next line that is not empty.
  std::istringstream next_line() {
    do {
      ++line_;
      if (!std::getline(file_, text_)) fail("truncated: the header promises more");
    } while (text_.find_first_not_of(" \t\r") == std::string::npos);
    return std::istringstream(text_);
  }

  uint64_t number_in(std::istringstream& words, const char* what) const {
    std::string word;
    words >> word;
    if (word.empty() || word.size() > 15 || word.find_first_not_of("0123456789") != std::string::npos) {
      fail(std::string("expected ") + what + ", got '" + word + "'");
    }
    return std::stoull(word);
  }

  void end_of(std::istringstream& words) const {
    std::string word;
    if (words >> word) fail("unexpected '" + word + "'");
  }

  void operation(std::istringstream words) {
    std::string letter, peeked;
    words >> letter;
    if (letter != "a" && letter != "r" && letter != "f") fail("unknown operation '" + letter + "' (a, r or f)");
    auto before = words.tellg();
    if (letter == "f" && words >> peeked && peeked == "-1") return end_of(words);
    words.clear();
    words.seekg(before);
    uint64_t id = number_in(words, "an identifier");
    uint64_t size = letter == "f" ? 0 : number_in(words, "a size");
    end_of(words);
    apply(letter[0], id, size);
  }

  void apply(char letter, uint64_t id, uint64_t size) {
    auto live = live_.find(id);
    if (letter == 'a' && live != live_.end()) fail("block " + std::to_string(id) + " is already allocated");
    if (letter == 'f' && live == live_.end()) fail("block " + std::to_string(id) + " is not allocated");
    Event event{.kind = Kind::kMalloc, .time = time_++, .block = made_, .size = size};
    if (letter == 'f') {
      event.kind = Kind::kFree;
      event.block = live->second;
      live_.erase(live);
    } else {
      if (live != live_.end()) {  // otherwise: realloc of the null pointer
        event.kind = Kind::kRealloc;
        event.old = live->second;
      }
      live_[id] = made_++;
    }
    count(header_, event);
    visit_(event);
  }

  std::string name_;
  const Visitor& visit_;
  std::ifstream file_;
  Header header_;
  std::string text_;
  uint64_t line_ = 0;
  uint64_t time_ = 0;
  uint64_t made_ = 0;
  std::unordered_map<uint64_t, uint64_t> live_;  // identifier to block
};

}  // namespace

Header read_rep(const std::filesystem::path& path, const Visitor& visit) { return RepReader(path, visit).read(); }

}  // namespace hm::trace
