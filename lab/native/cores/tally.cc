#include "tally.h"

#include <algorithm>
#include <vector>

#include "objects.h"

namespace cores {

namespace {

constexpr std::size_t kMostSites = 40;

std::uint64_t disturbances(const Counts& counts) { return counts.transfers + counts.upgrades; }

void write_counts(std::FILE* out, const char* prefix, const Counts& of) {
  auto field = [&](const char* name, std::uint64_t value) {
    std::fprintf(out, "\"%s%s\":%llu,", prefix, name, static_cast<unsigned long long>(value));
  };
  field("instructions", of.instructions);
  field("locked", of.locked);
  field("fills", of.fills);
  field("transfers", of.transfers);
  field("upgrades", of.upgrades);
  field("far", of.far);
  field("hand_offs", of.hand_offs);
}

}  // namespace

void Counts::add(Outcome outcome, bool locked_access) {
  fills += outcome.effect == Effect::fill;
  transfers += outcome.effect == Effect::transfer;
  upgrades += outcome.effect == Effect::upgrade;
  far += outcome.far;
  hand_offs += locked_access && outcome.disturbs();
}

void Tally::begin() {
  calls_ = whole_ = {};
  sites_.clear();
}

void Tally::execute(std::uint64_t instructions, bool in_call) {
  whole_.instructions += instructions;
  if (in_call) calls_.instructions += instructions;
}

void Tally::lock(bool in_call) {
  ++whole_.locked;
  if (in_call) ++calls_.locked;
}

void Tally::access(Outcome outcome, std::uint64_t site, LineNumber line, bool locked_access, bool in_call) {
  if (outcome.effect == Effect::hit) return;
  whole_.add(outcome, locked_access);
  if (!in_call) return;
  calls_.add(outcome, locked_access);
  if (outcome.disturbs())
    sites_[{site, programs_.contains(line) ? Line::programs : Line::allocators}].add(outcome, locked_access);
}

void Tally::write(std::FILE* out) const {
  std::fputc('{', out);
  write_counts(out, "", calls_);
  write_counts(out, "whole_", whole_);
  write_sites(out);
  std::fputs("}\n", out);
}

// The busiest ones: [object, address in it, whose line, transfers, upgrades], ...
void Tally::write_sites(std::FILE* out) const {
  std::vector<std::pair<std::pair<std::uint64_t, Line>, Counts>> sorted(sites_.begin(), sites_.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return disturbances(a.second) > disturbances(b.second); });
  if (sorted.size() > kMostSites) sorted.resize(kMostSites);
  Objects objects;
  std::fputs("\"sites\":[", out);
  const char* comma = "";
  for (const auto& [site, counts] : sorted) {
    Objects::Place place = objects.find(site.first);
    std::fprintf(out, "%s[\"%s\",%llu,\"%s\",%llu,%llu]", comma, place.object.c_str(),
                 static_cast<unsigned long long>(place.offset), site.second == Line::programs ? "program's" : "allocator's",
                 static_cast<unsigned long long>(counts.transfers), static_cast<unsigned long long>(counts.upgrades));
    comma = ",";
  }
  std::fputc(']', out);
}

}  // namespace cores
