#include "accordion/comm/c10d_error.h"

#include <c10/util/Exception.h>

#include <cctype>
#include <exception>

namespace accordion {
namespace {

std::string what_of_current_exception() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown failure";
  }
}

}  // namespace

std::string reason_of_current_exception() {
  std::string reason = what_of_current_exception();
  reason = reason.substr(0, reason.find('\n'));
  // "[../gloo/transport/tcp/pair.cc:598] Connection closed by peer"
  if (const std::size_t end = reason.find("] "); reason.starts_with('[') && end < reason.find(' '))
    reason.erase(0, end + 2);
  // Words begin small in the middle of a sentence; acronyms stay.
  if (reason.size() > 1 && std::islower(static_cast<unsigned char>(reason[1])))
    reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return reason;
}

}  // namespace accordion
