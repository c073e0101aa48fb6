// What a run's options of control mean: whether they go together, the levels, the controller.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accordion/adapt/control_options.h"
#include "accordion/adapt/controllers.h"
#include "accordion/compress/codecs.h"

namespace accordion {

// For what depends on the kind of levels alone, and not on the model.
inline constexpr std::size_t kAnyModel = 1;

// Throws UsageError for options that contradict each other; `owner`, the verb, leads the message.
void check_control(std::string_view owner, const ControlOptions& options);

// The codec settings to choose from, mildest first, for a model of so many parameters.
std::vector<CodecOptions> control_levels(std::string_view owner, const ControlOptions& options,
                                         std::size_t parameters);

// The same for another controller: of levels and batch sizes, what that one takes.
ControlOptions for_controller(ControlOptions options, const std::string& controller);

// Throws UsageError for a controller that nobody knows.
std::unique_ptr<Controller> make_controller(const ControlOptions& options, std::size_t layers, int levels);

}  // namespace accordion
