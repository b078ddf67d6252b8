// Shows a run in progress: on a terminal, as lines of JSON, and in a file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "app/common.h"
#include "app/meter.h"
#include "app/summary.h"

namespace pdes::app {

// A file that is opened before the run, so that a wrong name is told at once.
class OutputFile {
 public:
  OutputFile(const std::string& option, const std::string& path);  // throws Error
  void line(const std::string& text);
  void close();  // throws Error if something could not be written

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string name_;
  std::unique_ptr<std::FILE, Closer> file_;
};

// A file of points: a table with a heading (CSV), or one line of JSON each.  An array becomes columns name_0, name_1 ...
class Series {
 public:
  explicit Series(const std::string& path);  // throws Error
  void add(const nlohmann::ordered_json& point);
  void close() { file_.close(); }  // throws Error if something could not be written

 private:
  OutputFile file_;
  bool table_, begun_ = false;
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
  // When the run is over, writes the last point, its totals with the window and memory last seen, and the summary.
  void finish(const Run& run);  // throws Error

 private:
  void record(const Sample& sample);

  Meter meter_;
  Progress last_{};
  std::unique_ptr<LiveLine> line_;
  std::unique_ptr<Series> series_;
  std::unique_ptr<OutputFile> summary_;
  bool json_;
};

}  // namespace pdes::app
