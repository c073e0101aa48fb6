// A project of one's own: the C++ DistributedDataParallel around any module, here in a group of one.
#include <accordion/comm/c10d_group.h>
#include <accordion/ddp/ddp.h>
#include <accordion/launch/free_port.h>

#include <iostream>

int main() {
  accordion::Group group = accordion::c10d_group({.rank = 0, .size = 1, .port = accordion::free_port()});
  torch::nn::Linear net(4, 2);
  accordion::DistributedDataParallel ddp(net, group);
  ddp.backward(ddp.forward(torch::ones({3, 4})).sum());
  std::cout << "gradient of the bias: " << net->bias.grad()[0].item<float>() << "\n";
  return net->bias.grad()[0].item<float>() == 3 ? 0 : 1;
}
