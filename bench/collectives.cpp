#include "bench/collectives.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <sstream>

#include "accordion/base/error.h"
#include "accordion/comm/c10d.h"

namespace accordion::bench {
namespace {

// What `rank` contributes at place i: whole numbers, whose sums are exact in any order.
float value(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 3) % 11);
}

// One collective on memory of its own.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual void prepare() = 0;  // The input, for one verified call.
  virtual void run() = 0;
  virtual bool right() const = 0;
};

class Sum : public Collective {
 public:
  Sum(Communicator& communicator, std::size_t bytes)
      : communicator_(communicator), values_(std::max<std::size_t>(1, bytes / sizeof(float))) {}
  void prepare() override {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = value(communicator_.rank(), i);
  }
  void run() override { communicator_.sum(std::span(values_)); }
  bool right() const override {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      float expected = 0;
      for (int r = 0; r < communicator_.size(); ++r) expected += value(r, i);
      if (values_[i] != expected) return false;
    }
    return true;
  }

 protected:
  Communicator& communicator_;
  std::vector<float> values_;
};

class GlooSum final : public Sum {
 public:
  GlooSum(Communicator& communicator, c10::intrusive_ptr<c10d::ProcessGroup> group, std::size_t bytes)
      : Sum(communicator, bytes),
        group_(std::move(group)),
        tensors_{at::from_blob(values_.data(), {static_cast<std::int64_t>(values_.size())}, at::kFloat)} {}
  void run() override { group_->allreduce(tensors_)->wait(); }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::vector<at::Tensor> tensors_;
};

class Gather final : public Collective {
 public:
  Gather(Communicator& communicator, std::size_t bytes)
      : communicator_(communicator),
        mine_(std::max<std::size_t>(1, bytes / static_cast<std::size_t>(communicator.size()))),
        all_(mine_.size() * static_cast<std::size_t>(communicator.size())) {}
  void prepare() override {
    for (std::size_t i = 0; i < mine_.size(); ++i) mine_[i] = at_place(communicator_.rank(), i);
  }
  void run() override { communicator_.gather(mine_, all_); }
  bool right() const override {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i] != at_place(static_cast<int>(i / mine_.size()), i % mine_.size())) return false;
    return true;
  }

 private:
  static std::byte at_place(int rank, std::size_t i) {
    return static_cast<std::byte>(static_cast<int>(value(rank, i)));
  }
  Communicator& communicator_;
  std::vector<std::byte> mine_, all_;
};

// Every rank hands every rank, itself included, a piece of its own.
class Scatter final : public Collective {
 public:
  Scatter(Communicator& communicator, std::size_t bytes)
      : communicator_(communicator),
        ranks_(static_cast<std::size_t>(communicator.size())),
        piece_(std::max<std::size_t>(1, bytes / ranks_)),
        mine_(piece_ * ranks_),
        all_(piece_ * ranks_) {
    for (std::size_t r = 0; r < ranks_; ++r) {
      send_.push_back(std::span<const std::byte>(mine_).subspan(r * piece_, piece_));
      receive_.push_back(std::span(all_).subspan(r * piece_, piece_));
    }
  }
  void prepare() override {
    for (std::size_t i = 0; i < mine_.size(); ++i)
      mine_[i] = at_place(communicator_.rank(), i / piece_, i % piece_);
  }
  void run() override { communicator_.all_to_all(send_, receive_); }
  bool right() const override {
    const auto me = static_cast<std::size_t>(communicator_.rank());
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i] != at_place(static_cast<int>(i / piece_), me, i % piece_)) return false;
    return true;
  }

 private:
  static std::byte at_place(int from, std::size_t to, std::size_t i) {
    return static_cast<std::byte>(static_cast<int>(value(from, i + 5 * to)));
  }
  Communicator& communicator_;
  std::size_t ranks_, piece_;
  std::vector<std::byte> mine_, all_;
  std::vector<std::span<const std::byte>> send_;
  std::vector<std::span<std::byte>> receive_;
};

class Broadcast final : public Collective {
 public:
  Broadcast(Communicator& communicator, std::size_t bytes) : communicator_(communicator), bytes_(bytes) {}
  void prepare() override {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::byte>(communicator_.rank() == 0 ? static_cast<int>(value(0, i)) : 255);
  }
  void run() override { communicator_.broadcast(bytes_, 0); }
  bool right() const override {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if (bytes_[i] != static_cast<std::byte>(static_cast<int>(value(0, i)))) return false;
    return true;
  }

 private:
  Communicator& communicator_;
  std::vector<std::byte> bytes_;
};

std::unique_ptr<Collective> make(Communicator& communicator, const std::string& operation,
                                 std::size_t bytes) {
  if (operation == "sum") return std::make_unique<Sum>(communicator, bytes);
  if (operation == "gather") return std::make_unique<Gather>(communicator, bytes);
  if (operation == "scatter") return std::make_unique<Scatter>(communicator, bytes);
  return std::make_unique<Broadcast>(communicator, bytes);
}

double link_share(const std::string& operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  return operation == "sum" ? 2 * others : operation == "gather" || operation == "scatter" ? others : 1;
}

// Of this rank, from a moment at which all are there.
double own_seconds(Communicator& control, Collective& collective) {
  std::int8_t here = 0;
  control.sum(std::span(&here, 1));
  const auto begin = std::chrono::steady_clock::now();
  collective.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Of the slowest rank.
double seconds_of(Communicator& control, Collective& collective) {
  double seconds = own_seconds(control, collective);
  control.max(std::span(&seconds, 1));
  return seconds;
}

double least_of(Communicator& control, Collective& collective) {
  double negative = -own_seconds(control, collective);
  control.max(std::span(&negative, 1));
  return -negative;
}

void verify(Communicator& control, Collective& collective, const std::string& what) {
  collective.prepare();
  collective.run();
  std::int32_t wrong = !collective.right();
  control.sum(std::span(&wrong, 1));
  if (wrong) throw Error("bench collectives: " + what + " is wrong on " + std::to_string(wrong) + " ranks");
}

}  // namespace

std::vector<std::string> operations_of(const CollectivesOptions& options) {
  std::vector<std::string> operations;
  std::istringstream stream(options.operations);
  for (std::string operation; std::getline(stream, operation, ',');) {
    check_name("bench collectives", "operations", operation,
               one_of({"sum", "gather", "scatter", "broadcast"}));
    operations.push_back(operation);
  }
  return operations;
}

std::vector<std::size_t> sizes_of(const CollectivesOptions& options) {
  std::vector<std::size_t> sizes;
  for (std::int64_t bytes = options.from; bytes < options.to; bytes *= options.factor)
    sizes.push_back(static_cast<std::size_t>(bytes));
  if (options.from <= options.to) sizes.push_back(static_cast<std::size_t>(options.to));
  return sizes;
}

CollectiveTiming time_collective(Group& group, Group* gloo_group, const std::string& operation,
                                 std::size_t bytes, const CollectivesOptions& options) {
  Communicator& control = group.control();
  const std::string what = "the " + operation + " of " + std::to_string(bytes) + " bytes";
  const auto ours = make(group.gradients(), operation, bytes);
  std::unique_ptr<Collective> gloo;
  if (operation == "sum" && gloo_group)
    gloo = std::make_unique<GlooSum>(control, control_process_group(*gloo_group), bytes);
  verify(control, *ours, what);
  if (gloo) verify(control, *gloo, "Gloo's all-reduce of " + std::to_string(bytes) + " bytes");

  const std::uint64_t before = group.gradients().sent_bytes();
  const double first = seconds_of(control, *ours);
  const std::uint64_t sent = group.gradients().sent_bytes() - before;
  const double pair = first + (gloo ? seconds_of(control, *gloo) : 0);
  const int repetitions = options.repetitions > 0
                              ? options.repetitions
                              : static_cast<int>(std::clamp(options.seconds / pair, 3.0, 200.0));
  std::vector<double> our_ms, gloo_ms, ratios;
  for (int i = 0; i < repetitions; ++i) {
    double mine = 0, theirs = 0;
    if (gloo && i % 2) theirs = seconds_of(control, *gloo);
    mine = seconds_of(control, *ours);
    if (gloo && i % 2 == 0) theirs = seconds_of(control, *gloo);
    our_ms.push_back(1e3 * mine);
    if (!gloo) continue;
    gloo_ms.push_back(1e3 * theirs);
    ratios.push_back(mine / theirs);
  }
  const double ms = median_of(our_ms).value, speed = static_cast<double>(bytes) / (1e6 * ms);
  return {operation,
          bytes,
          repetitions,
          ms,
          speed,
          speed * link_share(operation, group.size()),
          median_of(gloo_ms).value,
          median_of(ratios),
          sent};
}

std::vector<double> least_seconds(Group& group, const std::string& operation, std::size_t bytes,
                                  double seconds) {
  Communicator& control = group.control();
  const auto collective = make(group.gradients(), operation, bytes);
  verify(control, *collective, "the " + operation + " of " + std::to_string(bytes) + " bytes");
  const double first = least_of(control, *collective);  // The same on all ranks.
  std::vector<double> times;
  for (int left = static_cast<int>(std::clamp(seconds / first, 3.0, 200.0)); left > 0; --left)
    times.push_back(least_of(control, *collective));
  return times;
}

}  // namespace accordion::bench
