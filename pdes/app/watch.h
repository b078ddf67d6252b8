// Shows a run in progress: on a terminal, as lines of JSON, and in a file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "app/common.h"
#include "app/meter.h"

namespace pdes::app {

// A file of points: a table with a heading (CSV), or one line of JSON each.  An array becomes columns name_0, name_1 ...
class Series {
 public:
  explicit Series(const std::string& path);  // throws Error
  void add(const nlohmann::ordered_json& point);
  void close();  // throws Error if something could not be written

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  bool table_, begun_ = false;
  std::unique_ptr<std::FILE, Closer> file_;
};

// One line on standard error, overwritten each time; if that is no terminal, a new line now and then.
class LiveLine {
 public:
  explicit LiveLine(std::string name);
  void draw(const Sample& sample);
  void erase();

 private:
  std::string name_;
  bool terminal_, drawn_ = false;
  double last_ = -1;
};

class Watch {
 public:
  Watch(const std::string& name, const Output& output);  // throws Error
  bool wanted() const noexcept { return line_ || series_ || json_; }
  void see(const Progress& progress);
  void erase() {
    if (line_) line_->erase();
  }
  // Writes the last point when the run is over: its totals, with the window and memory last seen.
  void finish(const Result& result, Time end);  // throws Error

 private:
  void record(const Sample& sample);

  Meter meter_;
  Progress last_{};
  std::unique_ptr<LiveLine> line_;
  std::unique_ptr<Series> series_;
  bool json_;
};

}  // namespace pdes::app
