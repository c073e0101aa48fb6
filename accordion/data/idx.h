// MNIST's file format, raw or gzip.
//
// images := 0x00000803, count, height, width: u32; pixel: u8[count * height * width]
// labels := 0x00000801, count: u32; label: u8[count]            -- numbers most significant byte first
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accordion/data/images.h"

namespace accordion {

Images read_idx(const std::filesystem::path& images_file, const std::filesystem::path& labels_file,
                int classes);

// What MNIST and the data sets made in its image call their files.
inline const std::vector<std::string> kIdxFiles = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                   "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

// From those four. An IDX file can have images of any size, and models are built for one: `expected`.
ImageSet read_idx_set(const std::string& name, const std::vector<std::filesystem::path>& files,
                      const ImageShape& expected, float mean, float deviation);

}  // namespace accordion
