#include "accordion/log/event_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <system_error>

#include "accordion/base/error.h"

namespace accordion {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? 0x82f63b78U ^ (value >> 1) : value >> 1;
    table[i] = value;
  }
  return table;
}

template <class Value>
void put_bytes(std::string& to, Value value) {
  static_assert(std::endian::native == std::endian::little);
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 128; value >>= 7) to += static_cast<char>(value | 128);
  to += static_cast<char>(value);
}

// A field's number, and how it is written: as a varint, as 8 or 4 bytes, or with its length.
enum Wire { kVarint = 0, kEight = 1, kLength = 2, kFour = 5 };

void put_key(std::string& to, int field, Wire wire) {
  put_varint(to, static_cast<std::uint64_t>(field << 3 | wire));
}

void put_text(std::string& to, int field, std::string_view text) {
  put_key(to, field, kLength);
  put_varint(to, text.size());
  to += text;
}

std::string event_now() {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string event;
  put_key(event, 1, kEight);
  put_bytes(event, now);
  return event;
}

void put_scalar(std::string& summary, const std::string& tag, double scalar) {
  if (!std::isfinite(scalar)) return;
  std::string value;
  put_text(value, 1, tag);
  put_key(value, 2, kFour);
  put_bytes(value, static_cast<float>(scalar));
  put_text(summary, 1, value);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

EventFile::EventFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  std::string event = event_now();
  put_text(event, 3, "brain.Event:2");
  append(event);
}

void EventFile::add(const EpochRecord& record) {
  std::string summary;
  put_scalar(summary, "loss/train", record.train_loss);
  put_scalar(summary, "loss/test", record.test_loss);
  if (record.test_accuracy) put_scalar(summary, "test/accuracy", *record.test_accuracy);
  if (record.test_perplexity) put_scalar(summary, "test/perplexity", *record.test_perplexity);
  put_scalar(summary, "schedule/lr", record.lr);
  put_scalar(summary, "schedule/global_batch", static_cast<double>(record.global_batch));
  put_scalar(summary, "cost/seconds", record.seconds);
  put_scalar(summary, "cost/payload_bytes", static_cast<double>(record.payload_bytes));
  put_scalar(summary, "cost/wire_bytes", static_cast<double>(record.wire_bytes));
  if (record.hessian_eigenvalue) put_scalar(summary, "hessian/eigenvalue", *record.hessian_eigenvalue);
  for (const LayerRecord& layer : record.layers) {
    put_scalar(summary, "norm/" + layer.name, layer.norm);
    put_scalar(summary, "level/" + layer.name, layer.level);
  }
  std::string event = event_now();
  put_key(event, 2, kVarint);
  put_varint(event, static_cast<std::uint64_t>(record.epoch));
  put_text(event, 5, summary);
  append(event);
}

// In one write, so that a reader meanwhile sees whole records, or one that is cut short, which it waits for.
void EventFile::append(std::string_view event) const {
  std::string length;
  put_bytes(length, static_cast<std::uint64_t>(event.size()));
  std::string record = length;
  put_bytes(record, masked_crc32c(length));
  record += event;
  put_bytes(record, masked_crc32c(event));
  errno = 0;
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  if (!file.write(record.data(), static_cast<std::streamsize>(record.size())).flush())
    throw Error(path_.string() + ": cannot write: " + std::generic_category().message(errno ? errno : EIO));
}

}  // namespace accordion
