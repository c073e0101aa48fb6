// Every codec there is. Their order is that of help texts; what a frame calls them is each one's kFrameId.
#pragma once

#include <variant>

#include "accordion/compress/atomo.h"
#include "accordion/compress/bf16.h"
#include "accordion/compress/dgc.h"
#include "accordion/compress/fp16.h"
#include "accordion/compress/mstopk.h"
#include "accordion/compress/none.h"
#include "accordion/compress/powersgd.h"
#include "accordion/compress/qsgd.h"
#include "accordion/compress/randomk.h"
#include "accordion/compress/sign_scaled.h"
#include "accordion/compress/sign_vote.h"
#include "accordion/compress/terngrad.h"
#include "accordion/compress/threshold.h"
#include "accordion/compress/topk.h"

namespace accordion {

using CodecOptions = std::variant<NoneOptions, Fp16Options, Bf16Options, TopKOptions, MsTopKOptions,
                                  RandomKOptions, DgcOptions, SignVoteOptions, SignScaledOptions, QsgdOptions,
                                  TernGradOptions, PowerSgdOptions, AtomoOptions, ThresholdOptions>;

}  // namespace accordion
