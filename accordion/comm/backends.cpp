#include "accordion/comm/backends.h"

#include "accordion/base/error.h"
#include "accordion/base/names.h"
#include "accordion/comm/c10d_group.h"
#ifdef ACCORDION_HAS_MPI
#include "accordion/comm/mpi_group.h"
#endif

namespace accordion {
namespace {

struct Backend {
  const char* name;
  Group (*connect)(const Rendezvous&);
};

// A program without torch knows names only.
#ifdef ACCORDION_BACKEND_NAMES
#define ACCORDION_CONNECT(function) nullptr
#else
#define ACCORDION_CONNECT(function) function
#endif

const Backend kBackends[] = {
    {"tcp", ACCORDION_CONNECT(c10d_group)},
    {"gloo", ACCORDION_CONNECT(gloo_group)},
#ifdef ACCORDION_HAS_MPI
    {"mpi", ACCORDION_CONNECT(mpi_group)},
#endif
};

const Backend& find(const std::string& name) {
  for (const Backend& backend : kBackends)
    if (name == backend.name) return backend;
  throw UsageError(unknown_name("backend", name, backend_names()) +
                   (name == "mpi" ? "; this program was built where no MPI was found" : ""));
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) names.push_back(backend.name);
  return names;
}

void check_backend(const std::string& name) {
  find(name);
}

Group connect(const std::string& backend, const Rendezvous& meeting) {
  return find(backend).connect(meeting);
}

}  // namespace accordion
