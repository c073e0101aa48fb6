// How a rank finds the others: what MASTER_ADDR, RANK and their like say.
#pragma once

#include <chrono>
#include <string>

#include "accordion/launch/place.h"

namespace accordion {

// What moves messages between ranks that have met: connections of our own (tcp.h), or Gloo's.
enum class Transport { kTcp, kGloo };

struct Rendezvous {
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";  // The machine of the store.
  int port = 29500;
  // The store is served by a launcher; otherwise rank 0 serves it.
  bool store_elsewhere = false;
  // How long to wait for the others at the start, and later for any one message.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  // The network interface to use; empty: the one through which the store is reached.
  std::string interface = {};
  // Leads all keys in the store. A launcher that restarts a run on the same store must change it.
  std::string prefix = "accordion";
  Transport transport = Transport::kTcp;
};

// The meeting of the ranks that a launcher started. A group that torchrun starts again meets under keys of its own.
Rendezvous rendezvous_at(const Place& place);

}  // namespace accordion
