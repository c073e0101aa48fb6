#include "accordion/adapt/controllers.h"

#include <algorithm>

#include "accordion/base/error.h"
#include "accordion/base/names.h"

namespace accordion {

// Each beside its source, NAME.cpp.
ControllerKind static_controller();
ControllerKind accordion_controller();
ControllerKind joint_controller();
ControllerKind auto_controller();
ControllerKind schedule_controller();
ControllerKind adaqs_controller();
ControllerKind lgreco_controller();
ControllerKind rethink_controller();
ControllerKind smith_controller();

namespace {

std::vector<ControllerKind>& known() {
  static std::vector<ControllerKind> kinds = {
      static_controller(), accordion_controller(), joint_controller(),
      auto_controller(),   schedule_controller(),  adaqs_controller(),
      lgreco_controller(), rethink_controller(),   smith_controller(),
  };
  return kinds;
}

auto named(const std::string& name) {
  return std::find_if(known().begin(), known().end(),
                      [&](const ControllerKind& kind) { return kind.name == name; });
}

}  // namespace

std::vector<ControllerKind> controllers() {
  return known();
}

std::vector<std::string> controller_names() {
  std::vector<std::string> names;
  for (const ControllerKind& kind : known()) names.push_back(kind.name);
  return names;
}

ControllerKind find_controller(const std::string& name) {
  const auto found = named(name);
  if (found == known().end()) throw UsageError(unknown_name("controller", name, controller_names()));
  return *found;
}

void add_controller(ControllerKind kind) {
  if (named(kind.name) != known().end())
    throw UsageError("controller " + kind.name + " is there already, expected another name");
  known().push_back(std::move(kind));
}

}  // namespace accordion
