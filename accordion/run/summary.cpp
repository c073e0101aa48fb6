#include "accordion/run/summary.h"

#include <algorithm>
#include <cmath>

#include "accordion/adapt/critical.h"
#include "accordion/adapt/detector_agreement.h"
#include "accordion/base/json.h"
#include "accordion/log/run_totals.h"

namespace accordion {
namespace {

// Whether the Hessian's eigenvalue calls critical what the whole model's gradient norm does.
Json detectors(const std::vector<EpochRecord>& epochs, const ControlOptions& control) {
  std::vector<double> norms, eigenvalues;
  for (const EpochRecord& epoch : epochs) {
    std::vector<double> layers;
    for (const LayerRecord& layer : epoch.layers) layers.push_back(layer.norm);
    norms.push_back(norm_per_step(layers, epoch.steps));
    eigenvalues.push_back(epoch.hessian_eigenvalue.value_or(std::nan("")));
  }
  const DetectorAgreement agreement =
      compare_detectors(norms, eigenvalues, control.interval, control.threshold);
  Json points = Json::array();
  for (const DecisionPoint& point : agreement.points) {
    points.push_back({{"epoch", point.epoch},
                      {"norm_critical", point.norm_critical},
                      {"eigenvalue_critical", point.eigenvalue_critical}});
    if (point.norm_change) points.back()["norm_change"] = *point.norm_change;
    if (point.eigenvalue_change) points.back()["eigenvalue_change"] = *point.eigenvalue_change;
  }
  return {
      {"comparisons", agreement.comparisons()}, {"agreements", agreement.agreements()}, {"points", points}};
}

}  // namespace

Json summarise(const std::vector<EpochRecord>& epochs, const ControlOptions& control) {
  Json summary = {{"epochs", epochs.size()}};
  std::optional<double> accuracy, perplexity;  // The best.
  for (const EpochRecord& epoch : epochs) {
    if (epoch.test_accuracy) accuracy = std::max(accuracy.value_or(0), *epoch.test_accuracy);
    if (epoch.test_perplexity)
      perplexity = std::min(perplexity.value_or(*epoch.test_perplexity), *epoch.test_perplexity);
  }
  if (!epochs.empty()) {
    summary["train_loss"] = epochs.back().train_loss;
    summary["test_loss"] = epochs.back().test_loss;
    if (epochs.back().test_accuracy) summary["test_accuracy"] = *epochs.back().test_accuracy;
    if (epochs.back().test_perplexity) summary["test_perplexity"] = *epochs.back().test_perplexity;
  }
  if (accuracy) summary["best_test_accuracy"] = *accuracy;
  if (perplexity) summary["best_test_perplexity"] = *perplexity;
  const RunTotals all = total(epochs);
  summary["seconds"] = all.seconds;
  summary["steps"] = all.steps;
  summary["payload_bytes"] = all.payload_bytes;
  summary["wire_bytes"] = all.wire_bytes;
  summary["paper_floats"] = all.paper_floats;
  // Of the model's entries, the share that sparse messages hold, in the mean over steps.
  if (all.entries > 0)
    summary["density"] =
        static_cast<double>(all.entries) /
        (static_cast<double>(all.steps) * static_cast<double>(total_elements(epochs.back().layers)));
  if (!epochs.empty() && epochs.back().hessian_eigenvalue) summary["detectors"] = detectors(epochs, control);
  return summary;
}

}  // namespace accordion
