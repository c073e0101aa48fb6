// What `train` and the verbs that start runs of it have in common.
#pragma once

#include <filesystem>
#include <string>

#include "accordion/run/options.h"

namespace accordion::cli {

// Where and how to run: nothing here changes the result.
struct LaunchOptions {
  int workers = 1;
  int threads = 0;
  int port = 0;
  double timeout = 300;
  std::string backend = "gloo";
  std::string interface;
  std::string data_dir;
  std::string out;
  bool overwrite = false;
  bool quiet = false;

  void fields(auto&& field) {
    field("workers", workers, "Ranks to start on this machine.", at_least(1).up_to(1024));
    field("threads", threads, "Threads per rank; 0 for its share of the cores.", at_least(0).up_to(1024));
    field("port", port, "TCP port at which ranks started here meet; 0 for a free one.",
          at_least(0).up_to(65535));
    field("timeout", timeout, "Seconds to wait for a peer.", at_least(0.001).up_to(1e7));
    field("backend", backend,
          "What carries messages between ranks: gloo, or mpi for ranks that mpirun started.");
    field("interface", interface,
          "Network interface of the gradients; empty for the one that reaches the first rank.");
    field("data-dir", data_dir, "Folder of the data set; empty for the usual places.");
    field("out", out, "Run folder; empty for a new one under runs/.");
    field("overwrite", overwrite, "Replace the run that the run folder holds.");
    field("quiet", quiet, "Print nothing but errors.");
  }
};

// What can be told before any rank starts is told once, not once a rank. Returns what will run.
TrainOptions check_run_options(const TrainOptions& given, int workers);

// Where data sets are kept, as the environment says.
std::filesystem::path data_root();

}  // namespace accordion::cli
