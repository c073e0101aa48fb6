// What the fuzzers do to parsers, in short and from a fixed seed: valid input that is cut, changed, stretched or made to
// announce absurd lengths is refused with an Error or accepted, soon and in bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <random>

#include "fuzz/targets.h"

#ifndef __has_feature  // GCC has macros instead.
#define __has_feature(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
#define ACCORDION_LIMITED 1  // The sanitizer itself takes terabytes of addresses.
#else
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024";
}
#endif

namespace accordion::fuzz {
namespace {

constexpr std::size_t kCuts = 100, kFlips = 300;

// Far more than any of these inputs is worth.
void limit_memory() {
#ifdef ACCORDION_LIMITED
  const rlimit most{std::size_t{2} << 30, std::size_t{2} << 30};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &most), 0);
#endif
}

std::vector<std::string> shortened(const std::string& seed) {
  std::vector<std::string> all;
  const std::size_t step = std::max<std::size_t>(1, seed.size() / kCuts);
  for (std::size_t size = 0; size < seed.size(); size += step) all.push_back(seed.substr(0, size));
  if (!seed.empty()) all.push_back(seed.substr(0, seed.size() - 1));
  return all;
}

std::vector<std::string> flipped(const std::string& seed, std::mt19937& random) {
  std::vector<std::string> all;
  for (std::size_t i = 0; !seed.empty() && i < kFlips; ++i) {
    // Headers are at the front.
    const std::size_t reach = i % 2 == 0 ? std::min<std::size_t>(seed.size(), 64) : seed.size();
    std::string changed = seed;
    for (std::size_t edits = 1 + random() % 3; edits > 0; --edits)
      changed[random() % reach] = static_cast<char>(random());
    all.push_back(std::move(changed));
  }
  return all;
}

// Four or eight bytes that may be a length, and every number of a text.
std::vector<std::string> with_absurd_numbers(const std::string& seed) {
  std::vector<std::string> all;
  for (const std::string& number :
       {std::string(4, '\xff'), std::string(8, '\xff'), "\x7f\xff\xff\xff" + std::string(4, '\xff')})
    for (std::size_t at = 0; at < std::min<std::size_t>(seed.size(), 40); at += 2)
      all.push_back(seed.substr(0, at) + number + seed.substr(std::min(seed.size(), at + number.size())));
  constexpr std::size_t kMost = 60;
  std::size_t seen = 0;
  for (std::size_t at = 0; at < seed.size() && seen < kMost; ++seen) {
    at = seed.find_first_of("0123456789", at);
    if (at == std::string::npos) break;
    const std::size_t end = std::min(seed.size(), seed.find_first_not_of("0123456789.", at));
    for (const char* number :
         {"-1", "99999999999999999999", "9223372036854775807", "1e308", "0", "\"x\"", "[]", "null"})
      all.push_back(seed.substr(0, at) + number + seed.substr(end));
    at = end;
  }
  return all;
}

std::vector<std::string> stretched(const std::string& seed) {
  std::vector<std::string> all;
  for (const std::string& piece :
       {std::string("["), std::string("{\"a\":"), std::string("a."), std::string("9"), std::string(1, '\0'),
        std::string("\xff"), std::string("\n")}) {
    std::string many;
    while (many.size() < 200'000) many += piece;
    all.push_back(many);
    all.push_back(seed.substr(0, seed.size() / 2) + many + seed.substr(seed.size() / 2));
    all.push_back(seed + many);
  }
  return all;
}

class Parser : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override { limit_memory(); }

  void try_all(const std::vector<std::string>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      try {
        ++(accepts(GetParam(), inputs[i]) ? accepted_ : refused_);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "input " << i << ", " << inputs[i].size() << " bytes: not an Error: " << error.what()
                      << "\n"
                      << inputs[i].substr(0, 500);
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(seconds.count(), 5) << "input " << i << ":\n" << inputs[i].substr(0, 500);
    }
  }

  int accepted_ = 0, refused_ = 0;
};

TEST_P(Parser, AcceptsItsSeeds) {
  ASSERT_FALSE(GetParam().seeds.empty());
  for (const std::string& seed : GetParam().seeds)
    EXPECT_NO_THROW(GetParam().parse(seed)) << seed.substr(0, 2000);
}

TEST_P(Parser, RefusesOrAcceptsTheRest) {
  std::mt19937 random(1);
  for (const std::string& seed : GetParam().seeds) {
    try_all(shortened(seed));
    try_all(flipped(seed, random));
    try_all(with_absurd_numbers(seed));
  }
  try_all(stretched(GetParam().seeds.front()));
  EXPECT_GT(accepted_, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Parser, ::testing::ValuesIn(targets()), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace accordion::fuzz
