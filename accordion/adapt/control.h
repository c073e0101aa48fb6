// The options that choose a controller and its levels: the same list for training and for deciding over a
// record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accordion/adapt/controller.h"
#include "accordion/base/options.h"
#include "accordion/compress/codecs.h"

namespace accordion {

struct ControlOptions {
  std::string codec = "none";
  std::string controller = "static";
  std::string mild = "", strong = "";
  int interval = 10;
  double threshold = 0.5, min_decay = 1.5;
  std::string plan = "critical";
  std::string parity = "none";

  void fields(auto&& field) {
    field("codec", codec, "How gradients travel: name:option=value,...");
    field("controller", controller,
          "Who chooses each layer's level: one codec throughout, Accordion, or a written schedule.",
          one_of({"static", "accordion", "schedule"}));
    field("mild", mild, "The controller's mild codec setting, for critical regimes.");
    field("strong", strong, "The controller's strong codec setting, for all other times.");
    field("interval", interval, "Accordion: epochs between detections.", at_least(1));
    field("threshold", threshold, "Accordion: relative change of a layer's gradient norm that is critical.",
          at_least(0));
    field("min-decay", min_decay,
          "Accordion: a learning rate that falls by more than this factor is a decay.", at_least(1));
    field("plan", plan,
          "Schedule: mild@0-20,mild@150-160,strong (ends not included, the last for all other epochs); or "
          "`critical`, "
          "which is that, or `inverse`, with mild and strong exchanged (as published, with --mild none).");
    field("parity", parity, "`paper` for the published code's behaviour to the letter, where it differs.",
          one_of({"none", "paper"}));
  }

  bool published() const { return parity == "paper"; }
};

// The codec settings to choose from, mildest first. Throws UsageError for options that contradict each other;
// `owner`, the verb, leads the message.
std::vector<CodecOptions> control_levels(std::string_view owner, const ControlOptions& options);

std::unique_ptr<Controller> make_controller(const ControlOptions& options, std::size_t layers);

// "mild@0-20,strong", "critical", "inverse".
Schedule parse_plan(std::string_view text);

}  // namespace accordion
