#include "accordion/comm/mpi.h"

// The C interface is all we use; the C++ one of old would only add warnings.
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <vector>

#include "accordion/base/error.h"

namespace accordion {
namespace {

// MPI counts in int: longer messages travel in pieces.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

// Calls `visit` with consecutive pieces of `bytes`.
template <class Byte>
void for_each_piece(std::span<Byte> bytes, auto&& visit) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    visit(piece.data(), static_cast<int>(piece.size()));
    bytes = bytes.subspan(piece.size());
  }
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &group_)) throw Error("MPI_Comm_dup: " + text_of(code));
    MPI_Comm_set_errhandler(group_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(group_, &rank_);
    MPI_Comm_size(group_, &size_);
  }
  ~MpiCommunicator() override { MPI_Comm_free(&group_); }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_to_all(std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    assert(send.size() == static_cast<std::size_t>(size_) && receive.size() == send.size());
    transfers_.clear();
    requests_.clear();
    // In step k everyone sends k ranks further, so that no rank is everybody's first.
    for (int step = 1; step < size_; ++step) {
      const int from = (rank_ - step + size_) % size_, to = (rank_ + step) % size_;
      for_each_piece(receive[static_cast<std::size_t>(from)], [&](std::byte* data, int count) {
        const Transfer& transfer = transfers_.emplace_back(Transfer{"receiving", "from", from, count});
        if (const int code = MPI_Irecv(data, count, MPI_BYTE, from, 0, group_, &next_request()))
          fail(transfer, code);
      });
      for_each_piece(send[static_cast<std::size_t>(to)], [&](const std::byte* data, int count) {
        const Transfer& transfer = transfers_.emplace_back(Transfer{"sending", "to", to, count});
        if (const int code = MPI_Isend(data, count, MPI_BYTE, to, 0, group_, &next_request()))
          fail(transfer, code);
      });
    }
    const auto own = send[static_cast<std::size_t>(rank_)];
    const auto target = receive[static_cast<std::size_t>(rank_)];
    assert(own.size() == target.size());
    if (!own.empty() && own.data() != target.data()) std::memcpy(target.data(), own.data(), own.size());
    wait_for_all();
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    assert(root >= 0 && root < size_);
    for_each_piece(bytes, [&](std::byte* data, int count) {
      if (const int code = MPI_Bcast(data, count, MPI_BYTE, root, group_))
        fail({"broadcasting", "from", root, count}, code);
    });
  }

 private:
  struct Transfer {
    const char* verb;
    const char* way;
    int peer;
    int bytes;
  };

  MPI_Request& next_request() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  void wait_for_all() {
    statuses_.resize(requests_.size());
    const int code = MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), statuses_.data());
    if (code == MPI_SUCCESS) return;
    if (code == MPI_ERR_IN_STATUS)
      for (std::size_t i = 0; i < statuses_.size(); ++i)
        if (const int reason = statuses_[i].MPI_ERROR; reason != MPI_SUCCESS && reason != MPI_ERR_PENDING)
          fail(transfers_[i], reason);
    throw Error("rank " + std::to_string(rank_) + ": all_to_all: " + text_of(code));
  }

  [[noreturn]] void fail(const Transfer& transfer, int code) const {
    throw Error("rank " + std::to_string(rank_) + ": " + transfer.verb + " " +
                std::to_string(transfer.bytes) + " bytes " + transfer.way + " rank " +
                std::to_string(transfer.peer) + ": " + text_of(code));
  }

  MPI_Comm group_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  // Of one call; kept between calls for their memory.
  std::vector<Transfer> transfers_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace

MpiSession::MpiSession() {
  int started = 0;
  MPI_Initialized(&started);
  int threads = MPI_THREAD_SINGLE;
  if (started) {
    MPI_Query_thread(&threads);
  } else {
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads))
      throw Error("MPI_Init_thread: " + text_of(code));
    ours_ = true;
  }
  if (threads < MPI_THREAD_MULTIPLE) {
    if (ours_) MPI_Finalize();
    throw Error(
        "MPI does not allow calls from several threads at once (MPI_THREAD_MULTIPLE), which is needed");
  }
}

MpiSession::~MpiSession() {
  if (ours_) MPI_Finalize();
}

std::unique_ptr<Communicator> MpiSession::communicator() {
  return std::make_unique<MpiCommunicator>();
}

}  // namespace accordion
