// Rows of a table, shuffled anew in every epoch.
#include <numeric>

#include "accordion/data/order.h"
#include "accordion/train/feed.h"
#include "accordion/train/table_rows.h"

namespace accordion {
namespace {

class TableFeed final : public Feed {
 public:
  TableFeed(const TableSet& data, const TrainOptions& options, int rank, int ranks)
      : table_(data.train),
        options_(options),
        rank_(rank),
        ranks_(ranks),
        order_(table_.size(), static_cast<std::size_t>(options.samples),
               static_cast<std::uint64_t>(options.seed)) {}

  std::vector<Step> queue(int epoch, int accumulate, std::int64_t done) override {
    plan_ = plan_epoch(order_.size(), options_.batch, accumulate, rank_, ranks_, options_.drop_last);
    rows_ = order_.epoch(epoch);
    next_ = plan_.begin_of(done);
    return plan_.steps;
  }

  Example next() override {
    const Share batch = plan_.micro_batches.at(next_++);
    return table_rows(table_, std::span(rows_).subspan(batch.begin, batch.size()));
  }

 private:
  const Table& table_;
  const TrainOptions options_;
  const int rank_, ranks_;
  const EpochOrder order_;
  EpochPlan plan_;
  std::vector<std::uint32_t> rows_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Feed> feed_of(const TableSet& data, const TrainOptions& options, int rank, int ranks) {
  return std::make_unique<TableFeed>(data, options, rank, ranks);
}

void show_tests(const TableSet& data, int, int rank, int ranks, const Look& look) {
  std::vector<std::uint32_t> rows(data.test.size());
  std::iota(rows.begin(), rows.end(), 0);
  for (const Share& batch : test_batches(rows.size(), rank, ranks))
    look(table_rows(data.test, std::span(rows).subspan(batch.begin, batch.size())));
}

}  // namespace accordion
