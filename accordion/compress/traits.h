// What the rest of the program must know of a codec beyond its messages. An options struct that differs from
// these defaults says so in a member `CodecTraits traits() const`; everyone asks traits_of() (codecs.h), and
// nobody else knows a codec by name.
#pragma once

#include <limits>
#include <optional>
#include <string_view>

namespace accordion {

// Momentum that the codec applies itself, so that its tensors need none from the optimizer.
struct OwnMomentum {
  double factor = 0;
  bool nesterov = false;

  bool operator==(const OwnMomentum&) const = default;
};

// The option that says how much is sent: half of it sends about half. Between mild and strong is in use.
struct Dial {
  std::string_view option;
  double mild = 0, strong = 0;
};

// How many ranks can add up their messages, with which option, and why no more.
struct RankLimit {
  int most = std::numeric_limits<int>::max();
  std::string_view option = {}, reason = {};
};

// A learning rate of SGD beyond which a run is likely a mistake, why, and what is usual.
struct RateLimit {
  double most = std::numeric_limits<double>::infinity();
  std::string_view reason = {}, usual = {};
};

// Which tensors of a codec are compressed, where they are of two dimensions and large enough.
enum class Worth { kIfShorter, kIfMuchShorter, kAlways };

struct CodecTraits {
  std::string_view spoken = {};  // What people call the codec; where it is empty, its name.
  std::optional<OwnMomentum> momentum = {};
  // Limit of the norm of the whole model's gradient, times the square root of the number of ranks; 0: none.
  double model_clip = 0;
  Worth worth = Worth::kIfShorter;
  std::optional<double> above_rank = {};  // Only matrices whose rank may be higher than this are worth it.
  std::optional<Dial> dial = {};
  RankLimit ranks = {};
  RateLimit rate = {};
  // How a trial finds what is lost: what such a fraction of the largest entries leaves, what the best
  // approximation of such a rank leaves, or else by so many of the codec's own steps.
  std::optional<double> keeps_largest = {};
  std::optional<int> approx_rank = {};
  int trial_steps = 1;
  // Takes minutes where others take seconds: not measured unless it is asked for by name.
  bool slow = false;
};

}  // namespace accordion
