// What `accordion` has in place of all that needs libtorch: there it becomes `accordion-torch`, the program that has it, with the
// same arguments. Loading libtorch takes half a second, which is long for a table, a typo or a launcher that only waits for its ranks.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "accordion/base/error.h"
#include "accordion/models/describe.h"
#include "accordion/train/run.h"
#include "cli/verbs.h"

namespace accordion {
namespace {

[[noreturn]] void become() {
  std::vector<std::string> arguments;
  std::ifstream line("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(line, argument, '\0');) arguments.push_back(std::move(argument));
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  // Where it was built, and where it is installed.
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path beside = folder / "accordion-torch";
  const std::filesystem::path installed = folder.parent_path() / "libexec/accordion/accordion-torch";
  ::execv(beside.c_str(), argv.data());
  const std::string why = errno == ENOENT ? "it is not there" : std::strerror(errno);
  ::execv(installed.c_str(), argv.data());
  throw Error(beside.string() + " cannot be started: " + why + "; nor is " + installed.string() +
              " there. It is built and installed together with this program");
}

// Of a verb that is nothing without torch.
cli::Run become_if_asked(std::string_view verb, char** argv) {
  if (argv[1] && verb == argv[1]) become();
  return []() -> int { become(); };
}

}  // namespace

// The default of RunSetup's connect.
Group c10d_group(const Rendezvous&) {
  become();
}

std::vector<TensorInfo> model_tensors(const std::string&, const InputShape&) {
  become();
}

std::vector<ModelDescription> describe_models() {
  become();
}

RunOutcome run_training(const TrainOptions&, const RunSetup&) {
  become();
}

namespace cli {

Run add_bench(CLI::App&, char** argv) {
  return become_if_asked("bench", argv);
}

Run add_calibrate(CLI::App&, char** argv) {
  return become_if_asked("calibrate", argv);
}

}  // namespace cli
}  // namespace accordion
