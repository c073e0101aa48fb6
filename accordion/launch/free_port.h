// A TCP port on which nobody listens on loopback right now. Somebody may take it before you do.
#pragma once

namespace accordion {

int free_port();

}  // namespace accordion
