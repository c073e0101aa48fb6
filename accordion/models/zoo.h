// Every model by name. A setting is written `name:option=value,option=value`, or just `name`, as codecs are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accordion/data/input_shape.h"
#include "accordion/models/cnn.h"
#include "accordion/models/densenet.h"
#include "accordion/models/dlrm.h"
#include "accordion/models/googlenet.h"
#include "accordion/models/gpt.h"
#include "accordion/models/lstm.h"
#include "accordion/models/resnet.h"
#include "accordion/models/senet.h"
#include "accordion/models/seresnet.h"
#include "accordion/models/vgg.h"
#include "accordion/models/wideresnet.h"

namespace accordion {

class Network;

using ModelOptions = std::variant<CnnOptions, DenseNetOptions, DlrmOptions, GoogLeNetOptions, GptOptions,
                                  LstmOptions, ResNet18Options, ResNet20Options, SeNetOptions,
                                  SeResNet18Options, Vgg19BnOptions, WideResNetOptions>;

std::vector<std::string> model_names();

// Those that learn from such data.
std::vector<std::string> model_names(const InputShape& input);

// The data and batch that `bench models` gives it. Throws UsageError for what parse_model refuses.
Usual usual_of(const std::string& setting);

// Throws UsageError for an unknown model or option, for a value out of range and for values that do not go
// together.
ModelOptions parse_model(std::string_view setting);

// Throws UsageError for what parse_model refuses, and for a model that is made for another kind of data.
void check_model(const std::string& setting, const InputShape& input);

// Throws UsageError for a model of text that cannot see so many positions at a time.
void check_window(const std::string& setting, int positions);

// Weights come from torch's generator: seed it first. Throws UsageError for what check_model refuses, and for
// an input that is too small for the model.
std::shared_ptr<Network> make_model(const std::string& setting, const InputShape& input);

}  // namespace accordion
