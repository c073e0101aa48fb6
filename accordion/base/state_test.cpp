#include "accordion/base/state.h"

#include <gtest/gtest.h>

#include <limits>

#include "accordion/base/error.h"

namespace accordion {
namespace {

std::string error_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(State, KeepsEachTypeToItsLastBit) {
  const std::vector<float> floats = {1.1f, -0.0f};
  const std::int64_t steps = (std::int64_t{1} << 53) + 1;
  const std::uint64_t seed = std::numeric_limits<std::uint64_t>::max();
  const double third = 1.0 / 3;
  State state;
  const StateWriter writer(state);
  writer.put("floats", floats);
  writer.put("steps", steps);
  writer.put("seed", seed);
  writer.put("third", third);
  writer.within("part").put("rates", std::vector{third, -third});
  writer.put("name", std::string("topk"));

  std::vector<float> read_floats;
  std::int64_t read_steps = 0;
  std::uint64_t read_seed = 0;
  double read_third = 0;
  std::vector<double> rates;
  std::string name;
  const StateReader reader(state);
  reader.get("floats", read_floats, 2);
  reader.get("steps", read_steps);
  reader.get("seed", read_seed);
  reader.get("third", read_third);
  reader.within("part").get("rates", rates);
  reader.get("name", name);
  EXPECT_NO_THROW(reader.require_all_read());
  EXPECT_EQ(read_floats, floats);
  EXPECT_EQ(read_steps, steps);
  EXPECT_EQ(read_seed, seed);
  EXPECT_EQ(read_third, third);
  EXPECT_EQ(rates, (std::vector{third, -third}));
  EXPECT_EQ(name, "topk");
}

TEST(State, SaysWhatDoesNotFit) {
  State state;
  StateWriter(state).within("w").put("q", std::vector<float>(3));
  StateWriter(state).put("step", 7);
  const StateReader reader(state);
  std::vector<float> q;
  std::vector<double> doubles;
  std::int64_t step = 0;
  EXPECT_EQ(error_of([&] { reader.get("p", q); }), "state: p is missing");
  EXPECT_EQ(error_of([&] { reader.within("w").get("q", q, 4); }), "state: w/q has 3 values, expected 4");
  EXPECT_TRUE(q.empty()) << "what was refused changes nothing";
  EXPECT_EQ(error_of([&] { reader.within("w").get("q", doubles); }),
            "state: w/q has floats, expected doubles");
  EXPECT_EQ(error_of([&] { reader.within("w").get("q", step); }), "state: w/q has floats, expected integers");
  EXPECT_EQ(error_of([&] { StateWriter(state).put("step", 8); }),
            "state: step is there already, expected each name once");
}

TEST(State, RefusesNumbersThatDoNotFit) {
  const State state = {{"x", std::vector<std::int64_t>{1ll << 40}}, {"y", std::vector<std::int64_t>{-1}}};
  const StateReader reader(state);
  int x = 7;
  unsigned y = 7;
  EXPECT_EQ(error_of([&] { reader.get("x", x); }), "state: x is 1099511627776, which its type cannot hold");
  EXPECT_EQ(error_of([&] { reader.get("y", y); }), "state: y is -1, which its type cannot hold");
  EXPECT_EQ(x, 7);
  EXPECT_EQ(y, 7u);
}

TEST(State, RefusesWhatNobodyAskedFor) {
  State state;
  const StateWriter writer(state);
  writer.within("a").put("x", 1);
  writer.within("a").put("y", 2);
  writer.within("b").put("z", 3);
  const StateReader reader(state);
  int x = 0;
  reader.within("a").get("x", x);
  EXPECT_EQ(error_of([&] { reader.within("a").require_all_read(); }), "state: a/y belongs to nothing here");
  reader.within("a").get("y", x);
  EXPECT_NO_THROW(reader.within("a").require_all_read());
  EXPECT_EQ(error_of([&] { reader.require_all_read(); }), "state: b/z belongs to nothing here");
}

TEST(State, KeepsWhatIsMissingWhereItMay) {
  const State state = {{"x", std::vector<std::int64_t>{5}}};
  const StateReader reader(state, StateReader::Missing::kKeep);
  int x = 1, y = 2;
  std::vector<float> z = {1, 2, 3};
  reader.get("x", x);
  reader.get("y", y);
  reader.get("z", z, 3);
  EXPECT_EQ(x, 5);
  EXPECT_EQ(y, 2);
  EXPECT_EQ(z.size(), 3u);
}

}  // namespace
}  // namespace accordion
