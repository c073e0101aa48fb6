// A run's scalars as TensorBoard reads them: an event file, which is a list of framed protocol-buffer messages.
//
// file   := record*
// record := length: u64, masked CRC-32C of it: u32, event: length bytes, masked CRC-32C of that: u32   -- little-endian
// event  := wall_time: double (1), step: int64 (2), file_version: text (3, of the first event) | summary (5)
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "accordion/log/epoch_record.h"

namespace accordion {

class EventFile {
 public:
  // Begins the file anew. Throws Error naming it when it cannot be written, as add() does.
  explicit EventFile(std::filesystem::path path);

  // An epoch's results, costs, rates, and each layer's norm and level, as scalars at step `epoch`. What is not finite is left
  // out.
  void add(const EpochRecord& record);

 private:
  void append(std::string_view event) const;

  std::filesystem::path path_;
};

// CRC-32C (Castagnoli), and as event files have it: rotated, so that the sum of data with sums in it stays telling.
std::uint32_t crc32c(std::string_view bytes);
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace accordion
