#include "accordion/comm/rendezvous.h"

namespace accordion {

Rendezvous rendezvous_at(const Place& place) {
  Rendezvous meeting{.rank = place.rank,
                     .size = place.world,
                     .address = place.address,
                     .port = place.port,
                     .store_elsewhere = place.store_elsewhere};
  if (place.restart > 0) meeting.prefix += "/restart-" + std::to_string(place.restart);
  return meeting;
}

}  // namespace accordion
