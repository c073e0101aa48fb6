// Every codec's place in the tests: the settings that the suite, the fuzzer and the property tests take, and what
// may be expected of them.
#pragma once

#include "accordion/compress/codec_entry_testing.h"

namespace accordion::testing_codecs {

inline const std::vector<CodecEntry>& codec_entries() {
  static const std::vector<CodecEntry> entries = {
      {.name = "fp16",
       .exactly = false,
       .rounding = 0x1p-10,
       .cases = {{"fp16:feedback=true"}},
       .golden = {{"fp16", "fp16:feedback=true", 0x4683b1f4d8b92698, 0x4683b1f4d8b92698}}},
      {.name = "bf16",
       .rounding = 0x1p-7,
       .cases = {{"bf16:feedback=true"}},
       .golden = {{"bf16", "bf16:feedback=true", 0x8b023f6490d539bb, 0x8b023f6490d539bb}}},
      {.name = "topk",
       .cases = {{"topk:keep=0.1"}, {"topk:keep=0.6"}},
       .golden = {{"topk:keep=0.6", "topk:keep=0.05", 0x9c0e9cd29c03f4d2, 0x9c0e9cd29c03f4d2}},
       .draw = [](const Dice& dice) { return "topk:" + dice.keep(); }},
      {.name = "mstopk",
       .cases = {{"mstopk:keep=0.1"}},
       .golden = {{"mstopk:keep=0.3", "mstopk:keep=0.05", 0x17acb6bd03f6fa5c, 0x17acb6bd03f6fa5c}},
       .draw = [](const Dice& dice) { return "mstopk:" + dice.keep() + ",samples=" + dice.number(1, 30); }},
      {.name = "randomk",
       .cases = {{"randomk:keep=0.25"}, {"randomk:keep=0.25,block=true"}},
       .golden = {{"randomk:keep=0.25", "randomk:keep=0.05", 0xa86da46f7b288ce3, 0xa86da46f7b288ce3},
                  {"randomk:keep=0.25,block=true", "randomk:keep=0.1,block=true", 0x20bea10fcaeffb85,
                   0x20bea10fcaeffb85}},
       .draw = [](const Dice& dice) { return "randomk:" + dice.keep() + dice.flag("block"); }},
      {.name = "randomk",
       .promise = Promise::kUnbiased,
       .cases = {{"randomk:keep=0.25,feedback=false"}},
       .draw = [](const Dice& dice) { return "randomk:feedback=false," + dice.keep() + dice.flag("block"); }},
      // Its momentum is not a gradient, so it has none here; and it shares a run with no other codec.
      {.name = "dgc",
       .cases = {{.setting = "dgc:keep=0.1,momentum=0,warmup=false", .fixed = false}},
       .golden = {{"dgc:keep=0.2", "dgc:keep=0.02", 0xaf3a64afea88310d, 0x99cb40f75306c20c},
                  {"dgc:keep=0.2,momentum=0,warmup=false", "dgc:keep=0.02,momentum=0,warmup=false",
                   0x52eb29694468ff99, 0x52eb29694468ff99}},
       .draw =
           [](const Dice& dice) {
             return "dgc:momentum=0," + dice.keep() + ",sample=" + dice.text({"0.01", "0.3", "1"});
           }},
      {.name = "sign-vote",
       .promise = Promise::kNeither,
       .homogeneous = false,
       .exactly = false,
       .cases = {{"sign-vote"}, {"sign-vote:count=true"}, {"sign-vote:chunked=true"}},
       .golden = {{"sign-vote", "sign-vote:chunked=true", 0x902372f01b1499d6, 0x902372f01b1499d6},
                  {"sign-vote:count=true", "sign-vote", 0xb8e14d61454b91d9, 0xb8e14d61454b91d9}}},
      {.name = "sign-scaled",
       .cases = {{"sign-scaled"}, {"sign-scaled:chunked=true"}},
       .golden = {{"sign-scaled", "sign-scaled:chunked=true", 0xa9a5d87e763222f6, 0xa9a5d87e763222f6}}},
      {.name = "qsgd",
       .promise = Promise::kUnbiased,
       .cases = {{"qsgd:bits=2"},
                 {"qsgd:bits=2,block=100"},
                 {"qsgd:bits=4,norm=l2"},
                 {"qsgd:bits=8"},
                 {.setting = "qsgd:bits=4,coding=elias", .fixed = false},
                 {"qsgd:bits=4,share-scale=true"},
                 {"qsgd:bits=4,chunked=true"}},
       .golden = {{"qsgd:bits=8", "qsgd:bits=2", 0xf8dd22f163389c1c, 0xf8dd22f163389c1c},
                  {"qsgd:bits=4", "qsgd:bits=4,norm=l2", 0x96478ccf401d55b9, 0x96478ccf401d55b9},
                  {"qsgd:bits=4,coding=elias", "qsgd:bits=2,coding=elias", 0x9c32cb2c246d81a1,
                   0x9c32cb2c246d81a1},
                  {"qsgd:bits=8,share-scale=true", "qsgd:bits=4,share-scale=true", 0xce1c88080d8cd596,
                   0xce1c88080d8cd596},
                  {"qsgd:bits=4,chunked=true", "qsgd:bits=2,chunked=true", 0x41e5a1cbc06de5fa,
                   0x41e5a1cbc06de5fa}},
       .draw =
           [](const Dice& dice) {
             return "qsgd:bits=" + dice.text({"2", "4", "8"}) +
                    ",block=" + dice.text({"1", "7", "64", "512", "100000"}) + dice.text({"", ",norm=l2"}) +
                    dice.text({"", "", ",coding=elias", ",share-scale=true", ",chunked=true"});
           }},
      {.name = "terngrad",
       .promise = Promise::kUnbiased,
       .cases = {{"terngrad"}, {"terngrad:chunked=true"}, {"terngrad:share-scale=true"}},
       .golden = {{"terngrad", "terngrad:clip=0", 0x96e6b2b6fe28bf49, 0x96e6b2b6fe28bf49},
                  {"terngrad:share-scale=true", "terngrad:clip=0,share-scale=true", 0x0275bd7dd21222f6,
                   0x0275bd7dd21222f6},
                  {"terngrad:chunked=true", "terngrad", 0xef2e5659a6935d9c, 0xef2e5659a6935d9c},
                  {"terngrad:clip=0,chunked=true", "terngrad", 0x7949b720c91381c4, 0x7949b720c91381c4}},
       .draw =
           [](const Dice& dice) {
             return "terngrad:clip=" + dice.text({"0", "1", "2.5"}) +
                    dice.text({"", ",share-scale=true", ",chunked=true"});
           }},
      {.name = "powersgd",
       .cases = {{"powersgd:approx-rank=1"}, {"powersgd:approx-rank=3"}},
       .golden = {{"powersgd:approx-rank=4", "powersgd:approx-rank=1", 0xc4ac1aa7763b690b,
                   0x96c219636247f1ba},
                  {"powersgd:approx-rank=2", "topk:keep=0.05", 0xae114543b9b5d0d8, 0xe8de060f12f6e618}},
       .draw =
           [](const Dice& dice) {
             return "powersgd:approx-rank=" + dice.number(1, 9) + (dice.coin() ? ",warm-start=false" : "");
           }},
      {.name = "atomo",
       .promise = Promise::kUnbiased,
       .exactly = false,
       .cases = {{.setting = "atomo:budget=2", .fixed = false, .bounded = false}},
       .golden = {{"atomo:budget=3", "atomo:budget=1", 0x6cda2e3ff1ed949e, 0x6cda2e3ff1ed949e}},
       .draw =
           [](const Dice& dice) {
             return "atomo:budget=" + dice.text({"0.5", "1", "3.5"});
           }},
      {.name = "threshold",
       .homogeneous = false,
       .exactly = false,
       .cases = {{.setting = "threshold:lambda=0.5", .fixed = false}},
       .golden = {{"threshold:lambda=0.05", "threshold:lambda=0.5", 0x19c5ad1f611c0848, 0x19c5ad1f611c0848}},
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
