// The mean of a few runs, and how far from it the mean of many may lie: half-widths of 95 % intervals.
#pragma once

#include <optional>
#include <span>

namespace accordion {

struct MeanInterval {
  double mean = 0;
  // None for fewer than two values, which say nothing about their spread.
  std::optional<double> normal95;   // 1.96 sigma/sqrt(n) with the population's sigma, as the paper has it.
  std::optional<double> student95;  // t s/sqrt(n) with the sample's s: right for a handful of values.
};

// Expects at least one value.
MeanInterval mean_interval(std::span<const double> values);

// Student's t that 95 % of values lie within, on both sides: 12.706 for 1 degree of freedom, 4.303 for 2.
double student_t95(int degrees);

}  // namespace accordion
