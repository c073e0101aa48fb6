// The one place that holds the version; CMake reads it from here.
#pragma once

namespace accordion {
inline constexpr const char* kVersion = "0.1.0";
}
