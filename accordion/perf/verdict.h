// Advice in a sentence for somebody who decides and does not compute.
#pragma once

#include <string>

#include "accordion/perf/advice.h"

namespace accordion::perf {

// "PowerSGD rank 4", "TopK 1 %"; a setting as it is where it has no name of its own.
std::string spoken(const std::string& method);

// "3.1 Gbit/s"
std::string spoken_gbps(double gbps);

std::string verdict_of(const Advice& advice);

}  // namespace accordion::perf
