// What torch and Gloo say when they fail, in a form fit for the end of a sentence.
#pragma once

#include <string>

namespace accordion {

// Of the exception that is being handled: without source positions, backtraces and lines after the first.
std::string reason_of_current_exception();

}  // namespace accordion
