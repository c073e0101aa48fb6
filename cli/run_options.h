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
  std::string backend = "tcp";
  std::string interface;
  std::string data_dir;
  std::string out;
  bool overwrite = false;
  bool resume = false;
  std::string checkpoint_every = "auto";
  int keep = 2;
  int check_every = 0;
  int max_restarts = 0;
  bool quiet = false;

  void fields(auto&& field) {
    field("workers", workers, "Ranks to start on this machine.", at_least(1).up_to(1024));
    field("threads", threads, "Threads per rank; 0 for its share of the cores.", at_least(0).up_to(1024));
    field("port", port, "TCP port at which ranks started here meet; 0 for a free one.",
          at_least(0).up_to(65535));
    field("timeout", timeout, "Seconds to wait for a peer; MPI waits for ever.", at_least(0.001).up_to(1e7));
    field("backend", backend,
          "What carries messages between ranks: tcp, gloo, or mpi for ranks that mpirun started.");
    field("interface", interface,
          "Network interface of the gradients, for tcp and gloo; empty for the one that reaches the first rank.");
    field("data-dir", data_dir, "Folder of the data set; empty for the usual places.");
    field("out", out, "Run folder; empty for a new one under runs/.");
    field("overwrite", overwrite, "Replace the run that the run folder holds.");
    field("resume", resume,
          "Go on with the run that the run folder holds, from its last checkpoint, if it is this very run.");
    field("checkpoint-every", checkpoint_every,
          "When to write a checkpoint beside those at the run's end and when it is asked to stop: 500steps, "
          "10min, 1epoch; "
          "auto: after epochs, for at most a hundredth of the time; never, also not at the end.");
    field("keep", keep, "Checkpoints that stay.", at_least(1).up_to(1e6));
    field("check-every", check_every,
          "Compare the workers' weights after so many steps; 0: after each epoch.", at_least(0));
    field("max-restarts", max_restarts,
          "Start the workers again, from the last checkpoint, up to so many times after a failure.",
          at_least(0).up_to(1e6));
    field("quiet", quiet, "Print nothing but errors.");
  }
};

// What can be told before any rank starts is told once, not once a rank. Returns what will run.
TrainOptions check_run_options(const TrainOptions& given, int workers);

// Where data sets are kept, as the environment says.
std::filesystem::path data_root();

}  // namespace accordion::cli
