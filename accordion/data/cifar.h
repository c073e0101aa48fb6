// The binary files of CIFAR-10 and CIFAR-100. They have no header; a file is any number of records.
//
// record10  := label: u8, pixel: u8[3][32][32]                  -- label below 10
// record100 := coarse: u8, fine: u8, pixel: u8[3][32][32]       -- coarse below 20, fine below 100
#pragma once

#include <filesystem>
#include <vector>

#include "accordion/data/images.h"

namespace accordion {

inline constexpr int kCifarChannels = 3, kCifarSide = 32;

// All files' images, one after the other.
Images read_cifar10(const std::vector<std::filesystem::path>& files);

// The labels are the fine ones.
Images read_cifar100(const std::filesystem::path& file);

}  // namespace accordion
