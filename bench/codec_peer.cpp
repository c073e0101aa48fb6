#include "bench/codec_peer.h"

#include <memory>

#include "accordion/base/json.h"
#include "accordion/base/options.h"
#include "accordion/launch/settings.h"
#include "bench/crew.h"

namespace accordion::bench {

CodecPeer start_codec_peer(const std::string& python, const std::string& peer, int threads) {
  const std::string count = std::to_string(threads);
  WorkerSpec spec{{python, peer, "--threads", count}, worker_environment(threads)};
  spec.environment["OMP_NUM_THREADS"] = spec.environment["OPENBLAS_NUM_THREADS"] = count;
  const auto crew = std::make_shared<Crew>("bench/peers.py", std::vector{spec});
  return {.prepare =
              [crew](const std::string& codec, const std::vector<TensorInfo>& layers,
                     const std::vector<float>& scales) {
                Json list = Json::array();
                for (std::size_t i = 0; i < layers.size(); ++i)
                  list.push_back({{"dims", layers[i].shape.dims}, {"scale", scales[i]}});
                return crew->command("codec " + codec + " " + list.dump()).at(0).at(0) != 0;
              },
          .run = [crew] { return 1e3 * crew->command("run").at(0).at(0); }};
}

}  // namespace accordion::bench
