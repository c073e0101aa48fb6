#include "accordion/comm/mpi.h"

// The C interface is all we use; the C++ one of old would only add warnings.
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <exception>
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

class MpiTransfer final : public Transfer {
 public:
  MpiTransfer(int rank, int peer, std::size_t bytes, bool sends)
      : rank_(rank), peer_(peer), bytes_(bytes), sends_(sends) {}

  // The next of the requests of which this transfer consists.
  MPI_Request& add() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  void check(int code) const {
    if (code != MPI_SUCCESS)
      throw Error("rank " + std::to_string(rank_) + (sends_ ? ": sending " : ": receiving ") +
                  std::to_string(bytes_) + " bytes " + (sends_ ? "to" : "from") + " rank " +
                  std::to_string(peer_) + ": " + text_of(code));
  }

  void wait() override {
    for (MPI_Request& request : requests_) check(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }

 private:
  const int rank_, peer_;
  const std::size_t bytes_;
  const bool sends_;
  std::vector<MPI_Request> requests_;
};

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

  std::unique_ptr<Transfer> start_send(int to, std::span<const std::byte> bytes) override {
    auto transfer = std::make_unique<MpiTransfer>(rank_, to, bytes.size(), true);
    for (; !bytes.empty(); bytes = bytes.subspan(piece(bytes.size())))
      transfer->check(MPI_Isend(bytes.data(), static_cast<int>(piece(bytes.size())), MPI_BYTE, to, 0, group_,
                                &transfer->add()));
    return transfer;
  }

  std::unique_ptr<Transfer> start_receive(int from, std::span<std::byte> bytes) override {
    auto transfer = std::make_unique<MpiTransfer>(rank_, from, bytes.size(), false);
    for (; !bytes.empty(); bytes = bytes.subspan(piece(bytes.size())))
      transfer->check(MPI_Irecv(bytes.data(), static_cast<int>(piece(bytes.size())), MPI_BYTE, from, 0,
                                group_, &transfer->add()));
    return transfer;
  }

 private:
  static std::size_t piece(std::size_t bytes) { return std::min(bytes, kPieceBytes); }

  MPI_Comm group_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
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
  // MPI_Finalize waits for all ranks. A rank that ends because it failed must not wait for those that wait for it:
  // the launcher sees that it went without, and ends them.
  if (ours_ && std::uncaught_exceptions() == 0) MPI_Finalize();
}

std::unique_ptr<Communicator> MpiSession::communicator() {
  return std::make_unique<MpiCommunicator>();
}

}  // namespace accordion
