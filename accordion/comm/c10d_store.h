// The ranks' meeting place (meeting_store.h), as Gloo asks for it.
#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "accordion/comm/meeting_store.h"

namespace accordion {

c10::intrusive_ptr<c10d::Store> c10d_store(std::unique_ptr<MeetingStoreClient> client,
                                           std::chrono::milliseconds timeout);

}  // namespace accordion
