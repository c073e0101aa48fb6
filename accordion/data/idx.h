// MNIST's file format, raw or gzip.
//
// images := 0x00000803, count, height, width: u32; pixel: u8[count * height * width]
// labels := 0x00000801, count: u32; label: u8[count]            -- numbers most significant byte first
#pragma once

#include <filesystem>

#include "accordion/data/images.h"

namespace accordion {

Images read_idx(const std::filesystem::path& images_file, const std::filesystem::path& labels_file,
                int classes);

}  // namespace accordion
