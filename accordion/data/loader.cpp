#include "accordion/data/loader.h"

#include <chrono>
#include <string>
#include <utility>

#include "accordion/base/error.h"

namespace accordion {

BatchLoader::BatchLoader(const Images& images, std::span<const float> mean, std::span<const float> deviation,
                         LoaderOptions options)
    : images_(images), writer_(mean, deviation), options_(options) {
  check("augmentation", options.augmentation);
  check_number("loader", "ahead", options.ahead, at_least(1));
  if (mean.size() != static_cast<std::size_t>(images.channels))
    throw UsageError("loader: " + std::to_string(mean.size()) + " means, expected one for each of " +
                     std::to_string(images.channels) + " channels");
  buffers_.resize(static_cast<std::size_t>(options.ahead) + 1);  // and the one that the reader holds
  thread_ = std::thread([this] { work(); });
}

BatchLoader::~BatchLoader() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_to_do_.notify_one();
  thread_.join();
}

void BatchLoader::queue(int epoch, std::vector<std::uint32_t> order, std::vector<Share> batches) {
  for (const Share& batch : batches)
    if (batch.begin > batch.end || batch.end > order.size())
      throw UsageError("loader: batch [" + std::to_string(batch.begin) + ", " + std::to_string(batch.end) +
                       ") of epoch " + std::to_string(epoch) + ", expected a range within the epoch's " +
                       std::to_string(order.size()) + " samples");
  epoch_batches_.push_back(batches.size());
  {
    std::lock_guard lock(mutex_);
    epochs_.push_back({epoch, std::move(order), std::move(batches)});
  }
  work_to_do_.notify_one();
}

std::optional<Batch> BatchLoader::next() {
  if (epoch_batches_.empty()) throw UsageError("loader: a batch was asked for with no epoch queued");
  if (position_ == epoch_batches_.front()) {
    epoch_batches_.pop_front();
    position_ = 0;
    return std::nullopt;
  }
  const double seconds = wait_for_batch();
  if (position_ == 0) {
    first_wait_seconds_ = seconds;
    wait_seconds_ = 0;
  } else {
    wait_seconds_ += seconds;
  }
  ++position_;
  // The thread leaves this buffer alone until the next call releases it.
  const Buffer& buffer = buffers_[(taken_ - 1) % buffers_.size()];
  return Batch{.images = buffer.images, .labels = buffer.labels};
}

double BatchLoader::wait_for_batch() {
  using Clock = std::chrono::steady_clock;
  double seconds = 0;
  {
    std::unique_lock lock(mutex_);
    released_ = taken_;
    if (made_ == taken_ && !failure_) {
      work_to_do_.notify_one();
      const auto begin = Clock::now();
      batch_made_.wait(lock, [&] { return made_ > taken_ || failure_; });
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    if (made_ == taken_) std::rethrow_exception(failure_);
    ++taken_;
  }
  work_to_do_.notify_one();
  return seconds;
}

void BatchLoader::work() {
  Epoch epoch{};
  std::size_t position = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    const bool epoch_done = position == epoch.batches.size();
    work_to_do_.wait(
        lock, [&] { return stop_ || (epoch_done ? !epochs_.empty() : made_ - released_ < buffers_.size()); });
    if (stop_) return;
    if (epoch_done) {
      epoch = std::move(epochs_.front());
      epochs_.pop_front();
      position = 0;
      continue;
    }
    Buffer& buffer = buffers_[made_ % buffers_.size()];
    lock.unlock();
    std::exception_ptr failure;
    try {
      make(epoch, epoch.batches[position++], buffer);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    if (!failure) ++made_;
    batch_made_.notify_one();
    if (failure) return;
  }
}

void BatchLoader::make(const Epoch& epoch, const Share& batch, Buffer& buffer) const {
  const std::size_t image_size = images_.image_size();
  buffer.images.resize(batch.size() * image_size);
  buffer.labels.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::uint32_t sample = epoch.order[batch.begin + i];
    if (sample >= images_.size())
      throw UsageError("loader: sample " + std::to_string(sample) + " in epoch " +
                       std::to_string(epoch.number) + ", expected one below " +
                       std::to_string(images_.size()));
    const Placement placement = place(options_.augmentation, options_.seed, epoch.number, sample);
    writer_.write(images_, sample, placement, std::span(buffer.images).subspan(i * image_size, image_size));
    buffer.labels[i] = images_.labels[sample];
  }
}

}  // namespace accordion
