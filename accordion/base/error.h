// The two kinds of failure a caller can meet. Bugs of ours are asserts.
#pragma once

#include <stdexcept>
#include <string>

namespace accordion {

// The world's fault: network, file, a peer's bytes. The message names the rank or file and the operation.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller's mistake. The message names the option, its value, and what would be right.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace accordion
