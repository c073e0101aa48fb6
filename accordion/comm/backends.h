// The back ends by name. One more is its own two files, a line in backends.cpp and one in CMakeLists.txt.
#pragma once

#include <string>
#include <vector>

#include "accordion/comm/group.h"
#include "accordion/comm/rendezvous.h"

namespace accordion {

// Those that this program was built with; the first is the default.
std::vector<std::string> backend_names();

// Throws UsageError unless the program has it.
void check_backend(const std::string& name);

// Meets the others over this back end. Collective.
Group connect(const std::string& backend, const Rendezvous& meeting);

}  // namespace accordion
