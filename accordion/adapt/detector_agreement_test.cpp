#include "accordion/adapt/detector_agreement.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "accordion/adapt/detector.h"
#include "accordion/base/error.h"

namespace accordion {
namespace {

using Values = std::vector<double>;

// What the eigenvalue's detector says of two values that follow each other.
DecisionPoint verdict(double before, double now, double threshold) {
  return compare_detectors(Values{1, 1}, Values{before, now}, 1, threshold).points[1];
}

TEST(DetectorAgreement, TakesTheThresholdItselfAsCritical) {
  EXPECT_TRUE(verdict(2, 1, 0.5).eigenvalue_critical);
  EXPECT_TRUE(verdict(2, 3, 0.5).eigenvalue_critical);
  EXPECT_FALSE(verdict(2, std::nextafter(1, 2), 0.5).eigenvalue_critical);
  EXPECT_FALSE(verdict(2, std::nextafter(3, 2), 0.5).eigenvalue_critical);
  EXPECT_TRUE(verdict(2, 2, 0).eigenvalue_critical) << "any change, none included";
  EXPECT_EQ(verdict(-2, 1, 0.5).eigenvalue_change, 1.5) << "an eigenvalue may be negative";
  EXPECT_EQ(verdict(2, -1, 0.5).eigenvalue_change, 1.5);
}

TEST(DetectorAgreement, TakesWhatCannotBeComparedAsCritical) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [before, now] : {std::pair{0.0, 1.0}, {0.0, 0.0}, {1.0, infinity}, {std::nan(""), 1.0}}) {
    const DecisionPoint point = verdict(before, now, 0.5);
    EXPECT_TRUE(point.eigenvalue_critical) << before;
    EXPECT_FALSE(point.norm_critical || point.eigenvalue_change || point.compared()) << before;
  }
}

TEST(DetectorAgreement, ReadsTheEpochsOfDetections) {
  // Between detections both go wild.
  const Values norms = {4, 90, 90, 3, 0, 0, 1, 7}, eigenvalues = {8, 0, 0, 2, 90, 90, 2, 0};
  const DetectorAgreement result = compare_detectors(norms, eigenvalues, 3, 0.5);
  ASSERT_EQ(result.points.size(), 3u);
  EXPECT_EQ(result.points[0].epoch, 0);
  EXPECT_FALSE(result.points[0].norm_change || result.points[0].eigenvalue_change);
  EXPECT_TRUE(result.points[0].norm_critical && result.points[0].eigenvalue_critical);

  EXPECT_EQ(result.points[1].epoch, 3);
  EXPECT_EQ(result.points[1].norm_change, 0.25);
  EXPECT_EQ(result.points[1].eigenvalue_change, 0.75);
  EXPECT_FALSE(result.points[1].norm_critical);
  EXPECT_TRUE(result.points[1].eigenvalue_critical);

  EXPECT_EQ(result.points[2].epoch, 6);
  EXPECT_NEAR(*result.points[2].norm_change, 2. / 3, 1e-15);
  EXPECT_EQ(result.points[2].eigenvalue_change, 0);
  EXPECT_TRUE(result.points[2].norm_critical);
  EXPECT_FALSE(result.points[2].eigenvalue_critical);
  EXPECT_GT(result.comparisons(), 0);
  EXPECT_EQ(result.agreements(), 0);
}

TEST(DetectorAgreement, CountsOnlyWhatBothCompared) {
  // The first, and the one after an eigenvalue of zero, say nothing.
  const DetectorAgreement result = compare_detectors(Values{1, 1, 1, 1, 1}, Values{4, 4, 0, 3, 9}, 1, 0.5);
  EXPECT_TRUE(result.points[3].eigenvalue_critical);
  EXPECT_FALSE(result.points[3].compared());
  EXPECT_EQ(result.comparisons(), 3);
  EXPECT_EQ(result.agreements(), 1) << "4 to 4 agrees, 4 to 0 and 3 to 9 do not";
}

TEST(DetectorAgreement, IsUnknownWithoutAComparison) {
  EXPECT_EQ(compare_detectors({}, {}, 1, 0.5).comparisons(), 0);
  EXPECT_EQ(compare_detectors(Values{1}, Values{1}, 1, 0.5).comparisons(), 0);
  EXPECT_EQ(compare_detectors(Values{1, 1}, Values{1, 1}, 2, 0.5).comparisons(), 0);
  EXPECT_EQ(compare_detectors(Values{1, 1}, Values{1, std::nan("")}, 1, 0.5).comparisons(), 0);
  EXPECT_EQ(compare_detectors(Values{1, 1}, Values{1, 1}, 1, 0.5).agreements(), 1);
}

TEST(DetectorAgreement, RefusesWhatMakesNoSense) {
  EXPECT_THROW(compare_detectors(Values{1}, Values{}, 1, 0.5), UsageError);
  EXPECT_THROW(compare_detectors({}, {}, 0, 0.5), UsageError);
  EXPECT_THROW(compare_detectors({}, {}, 1, -0.5), UsageError);
}

// The norm's verdict is that of the detector which runs are steered by.
RC_GTEST_PROP(DetectorAgreementProperties, DecidesAsTheDetectorDoes, ()) {
  const auto draw = [] {
    return *rc::gen::container<Values>(40,
                                       rc::gen::map(rc::gen::inRange(0, 12), [](int x) { return x / 4.0; }));
  };
  const Values norms = draw(), eigenvalues = draw();
  const int interval = *rc::gen::inRange(1, 8);
  const DetectorAgreement result = compare_detectors(norms, eigenvalues, interval, 0.5);
  Detector detector({.interval = interval}, 1);
  std::size_t points = 0;
  for (std::size_t e = 0; e < norms.size(); ++e) {
    if (!detector.see(static_cast<int>(e), 1, 1, {&norms[e], 1})) continue;
    RC_ASSERT(points < result.points.size());
    RC_ASSERT(result.points[points].epoch == static_cast<int>(e));
    RC_ASSERT(result.points[points].norm_critical == detector.verdicts()[0].critical);
    ++points;
  }
  RC_ASSERT(points == result.points.size());
  // Neither detector is the favoured one.
  RC_ASSERT(compare_detectors(eigenvalues, norms, interval, 0.5).agreements() == result.agreements());
}

}  // namespace
}  // namespace accordion
