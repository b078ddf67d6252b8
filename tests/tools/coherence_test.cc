// The rules of the model of coherence, on traces written by hand; and what the simulator knows of instructions.
#include "coherence.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <initializer_list>
#include <string_view>

#include "decode.h"
#include "marks.h"
#include "objects.h"

namespace cores {
namespace {

constexpr LineNumber kLine = 1000;

void expect(Outcome outcome, Effect effect, bool far = false) {
  EXPECT_EQ(outcome.effect, effect);
  EXPECT_EQ(outcome.far, far);
}

TEST(Coherence, TheFirstReadFillsFromMemoryAndTheNextHits) {
  Coherence of(4);
  expect(of.read(0, kLine), Effect::fill);
  expect(of.read(0, kLine), Effect::hit);
  expect(of.read(0, kLine + 1), Effect::fill);
}

TEST(Coherence, WhoHasALineAloneWritesItWithoutAWord) {
  Coherence of(4);
  of.read(0, kLine);
  expect(of.write(0, kLine), Effect::hit);
}

TEST(Coherence, AWriteThatMissesFillsOrTakesTheLineAway) {
  Coherence of(4);
  expect(of.write(0, kLine), Effect::fill);
  expect(of.write(1, kLine), Effect::transfer);
  expect(of.write(1, kLine), Effect::hit);
  expect(of.read(0, kLine), Effect::transfer);
}

TEST(Coherence, AReadOfAModifiedLineSharesIt) {
  Coherence of(4);
  of.write(0, kLine);
  expect(of.read(1, kLine), Effect::transfer);
  expect(of.read(0, kLine), Effect::hit);
  expect(of.read(1, kLine), Effect::hit);
}

TEST(Coherence, AWriteToASharedLineIsAnUpgradeOnce) {
  Coherence of(4);
  of.read(0, kLine);
  of.read(1, kLine);
  expect(of.write(0, kLine), Effect::upgrade);
  expect(of.write(0, kLine), Effect::hit);
  expect(of.read(1, kLine), Effect::transfer);
  expect(of.write(0, kLine), Effect::upgrade);
}

TEST(Coherence, OneWriteTakesTheLineFromAllWhoShareIt) {
  Coherence of(64);
  for (CoreIndex core = 0; core < 64; ++core) of.read(core, kLine);
  expect(of.write(7, kLine), Effect::upgrade, true);
  for (CoreIndex core = 0; core < 32; ++core) expect(of.read(core, kLine), core == 7 ? Effect::hit : Effect::transfer);
  expect(of.write(7, kLine), Effect::upgrade);
}

// Two cores that write different words of one line disturb each other at every turn.
TEST(Coherence, FalseSharingIsSharing) {
  Coherence of(2);
  of.write(0, kLine);
  for (int i = 0; i < 10; ++i) {
    expect(of.write(1, kLine), Effect::transfer, true);
    expect(of.write(0, kLine), Effect::transfer, true);
  }
}

TEST(Coherence, AFullSetLosesTheLineThatWasUsedLeastRecently) {
  Coherence of(2, {.sets = 4, .ways = 2});
  of.read(0, 0);
  of.read(0, 4);
  of.read(0, 0);
  of.read(0, 8);  // takes the place of 4
  expect(of.read(0, 0), Effect::hit);
  expect(of.read(0, 1), Effect::fill);  // another set
  expect(of.read(0, 4), Effect::fill);
  expect(of.read(0, 8), Effect::fill);  // which 4 has pushed out in turn: 0 was used later
}

TEST(Coherence, WhatHasLeftACacheIsNotTransferred) {
  Coherence of(2, {.sets = 1, .ways = 1});
  of.write(0, 1);
  of.write(0, 2);
  expect(of.read(1, 1), Effect::fill);
}

TEST(Coherence, WhoSharesALineAsksAlsoIfNobodyElseHasItAnyMore) {
  Coherence of(2, {.sets = 1, .ways = 1});
  of.read(0, 1);
  of.read(1, 1);
  of.read(1, 2);
  expect(of.write(0, 1), Effect::upgrade);
  expect(of.read(1, 1), Effect::transfer, true);
}

TEST(Coherence, WhatOthersDoToALineDoesNotCountAsUse) {
  Coherence of(2, {.sets = 1, .ways = 2});
  of.read(0, 1);
  of.read(0, 2);
  of.read(1, 1);
  of.read(0, 3);  // takes the place of 1
  expect(of.read(0, 2), Effect::hit);
}

TEST(Coherence, ALineFromTheOtherSocketIsFar) {
  Coherence of(4);  // 0 and 1, 2 and 3
  of.write(0, kLine);
  expect(of.read(1, kLine), Effect::transfer);
  expect(of.read(2, kLine), Effect::transfer, true);
  expect(of.read(3, kLine), Effect::transfer);  // 2 has it by now
}

TEST(Coherence, AWriteIsFarIfSomebodyThereLosesTheLine) {
  Coherence of(4);
  of.read(0, kLine);
  of.read(1, kLine);
  expect(of.write(0, kLine), Effect::upgrade);
  of.read(2, kLine);
  expect(of.write(0, kLine), Effect::upgrade, true);
  of.read(2, kLine);
  expect(of.write(1, kLine), Effect::transfer, true);
}

bool locked(std::string_view bytes) { return is_locked(bytes.data(), bytes.size()); }
Mark mark(std::string_view bytes) { return mark_in(bytes.data(), bytes.size()); }

TEST(Decode, LockedAreThePrefixAndExchangesWithMemory) {
  using namespace std::string_view_literals;
  for (std::string_view bytes : {"\xf0\x0f\xb1\x17"sv,             // lock cmpxchg %edx,(%rdi)
                                 "\xf0\x48\x0f\xc1\x07"sv,         // lock xadd %rax,(%rdi)
                                 "\x66\xf0\x0f\xc1\x07"sv,         // with another prefix before it
                                 "\x48\x87\x07"sv, "\x86\x07"sv})  // xchg %rax,(%rdi); %al
    EXPECT_TRUE(locked(bytes));
  for (std::string_view bytes : {"\x48\x87\xc7"sv,                             // xchg %rax,%rdi
                                 "\x48\x89\x07"sv,                             // mov %rax,(%rdi)
                                 "\x48\xc7\x07\xf0\x86\x00\x00"sv,             // movq $0x86f0,(%rdi)
                                 "\xf3\x90"sv, "\x0f\x87\x00\x00\x00\x00"sv})  // pause; ja
    EXPECT_FALSE(locked(bytes));
}

TEST(Decode, AMarkIsItsNopAndNoOther) {
  using namespace std::string_view_literals;
  EXPECT_EQ(mark("\x0f\x1f\x80\x01\x4d\x63\x68"sv), Mark::enter);
  EXPECT_EQ(mark("\x0f\x1f\x80\x02\x4d\x63\x68"sv), Mark::leave);
  EXPECT_EQ(mark("\x0f\x1f\x80\x00\x00\x00\x00"sv), Mark::none);
  EXPECT_EQ(mark("\x0f\x1f\x80\x01\x4d\x63\x68"sv.substr(0, 5)), Mark::none);
  EXPECT_EQ(mark("\x90"sv), Mark::none);
}

TEST(Objects, AnAddressIsNamedByItsFileAndWhereItLiesInIt) {
  auto address = reinterpret_cast<std::uint64_t>(&malloc_trim);  // not in the first of the file's mappings
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(address), &info), 0);
  Objects::Place place = Objects().find(address);
  EXPECT_NE(place.object.find("libc"), std::string::npos);
  EXPECT_EQ(place.offset, address - reinterpret_cast<std::uint64_t>(info.dli_fbase));
  EXPECT_TRUE(Objects().find(1).object.empty());
}

}  // namespace
}  // namespace cores
