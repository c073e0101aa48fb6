// Every codec's place in the tests: the settings that the suite, the fuzzer and the property tests take, and what
// may be expected of them.
#pragma once

#include "accordion/compress/codec_entry_testing.h"

namespace accordion::testing_codecs {

inline const std::vector<CodecEntry>& codec_entries() {
  static const std::vector<CodecEntry> entries = {
      {.name = "fp16", .exactly = false, .rounding = 0x1p-10, .cases = {{"fp16:feedback=true"}}},
      {.name = "bf16", .rounding = 0x1p-7, .cases = {{"bf16:feedback=true"}}},
      {.name = "topk",
       .cases = {{"topk:keep=0.1"}, {"topk:keep=0.6"}},
       .draw = [](const Dice& dice) { return "topk:" + dice.keep(); }},
      {.name = "mstopk",
       .cases = {{"mstopk:keep=0.1"}},
       .draw = [](const Dice& dice) { return "mstopk:" + dice.keep() + ",samples=" + dice.number(1, 30); }},
      {.name = "randomk",
       .cases = {{"randomk:keep=0.25"}, {"randomk:keep=0.25,block=true"}},
       .draw = [](const Dice& dice) { return "randomk:" + dice.keep() + dice.flag("block"); }},
      {.name = "randomk",
       .promise = Promise::kUnbiased,
       .cases = {{"randomk:keep=0.25,feedback=false"}},
       .draw = [](const Dice& dice) { return "randomk:feedback=false," + dice.keep() + dice.flag("block"); }},
      // Its momentum is not a gradient, so it has none here; and it shares a run with no other codec.
      {.name = "dgc",
       .cases = {{.setting = "dgc:keep=0.1,momentum=0,warmup=false", .fixed = false}},
       .draw =
           [](const Dice& dice) {
             return "dgc:momentum=0," + dice.keep() + ",sample=" + dice.text({"0.01", "0.3", "1"});
           }},
      {.name = "sign-vote",
       .promise = Promise::kNeither,
       .homogeneous = false,
       .exactly = false,
       .cases = {{"sign-vote"}, {"sign-vote:count=true"}, {"sign-vote:chunked=true"}}},
      {.name = "sign-scaled", .cases = {{"sign-scaled"}, {"sign-scaled:chunked=true"}}},
      {.name = "qsgd",
       .promise = Promise::kUnbiased,
       .cases = {{"qsgd:bits=2"},
                 {"qsgd:bits=2,block=100"},
                 {"qsgd:bits=4,norm=l2"},
                 {"qsgd:bits=8"},
                 {.setting = "qsgd:bits=4,coding=elias", .fixed = false},
                 {"qsgd:bits=4,share-scale=true"},
                 {"qsgd:bits=4,chunked=true"}},
       .draw =
           [](const Dice& dice) {
             return "qsgd:bits=" + dice.text({"2", "4", "8"}) +
                    ",block=" + dice.text({"1", "7", "64", "512", "100000"}) + dice.text({"", ",norm=l2"}) +
                    dice.text({"", "", ",coding=elias", ",share-scale=true", ",chunked=true"});
           }},
      {.name = "terngrad",
       .promise = Promise::kUnbiased,
       .cases = {{"terngrad"}, {"terngrad:chunked=true"}, {"terngrad:share-scale=true"}},
       .draw =
           [](const Dice& dice) {
             return "terngrad:clip=" + dice.text({"0", "1", "2.5"}) +
                    dice.text({"", ",share-scale=true", ",chunked=true"});
           }},
      {.name = "powersgd",
       .cases = {{"powersgd:approx-rank=1"}, {"powersgd:approx-rank=3"}},
       .draw =
           [](const Dice& dice) {
             return "powersgd:approx-rank=" + dice.number(1, 9) + (dice.coin() ? ",warm-start=false" : "");
           }},
      {.name = "atomo",
       .promise = Promise::kUnbiased,
       .exactly = false,
       .cases = {{.setting = "atomo:budget=2", .fixed = false, .bounded = false}},
       .draw =
           [](const Dice& dice) {
             return "atomo:budget=" + dice.text({"0.5", "1", "3.5"});
           }},
      {.name = "threshold",
       .homogeneous = false,
       .exactly = false,
       .cases = {{.setting = "threshold:lambda=0.5", .fixed = false}},
       .draw =
           [](const Dice& dice) {
             return "threshold:lambda=" + dice.text({"1e-42", "0.01", "0.5", "3", "1e20"});
           }},
      // Rounded without a residual.
      {.name = "fp16", .promise = Promise::kNeither, .exactly = false, .cases = {{"fp16"}}},
      {.name = "bf16", .promise = Promise::kNeither, .cases = {{"bf16"}}},
  };
  return entries;
}

}  // namespace accordion::testing_codecs
