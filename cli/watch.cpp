// accordion watch: the page of a run that goes on, on this machine alone. It has two addresses, reads the run's folder anew for
// each answer, and takes no other input.
#include <httplib.h>
#include <poll.h>

#include <filesystem>
#include <iostream>
#include <thread>

#include "accordion/base/error.h"
#include "accordion/base/hash.h"
#include "accordion/base/json.h"
#include "accordion/launch/stop_signals.h"
#include "accordion/report/page.h"
#include "accordion/report/page_data.h"
#include "cli/run_command.h"
#include "cli/verbs.h"

namespace accordion::cli {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

class LivePage {
 public:
  LivePage(std::filesystem::path folder, int port) : folder_(std::move(folder)) {
    read();  // What is no run is refused before anybody is told to look.
    // Its own default would let two servers share a port, and answers would come from either.
    server_.set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    port_ =
        port > 0 ? (server_.bind_to_port(kLoopback, port) ? port : -1) : server_.bind_to_any_port(kLoopback);
    if (port_ < 0)
      throw Error("watch: port " + std::to_string(port) + " of " + kLoopback +
                  " cannot be had, expected a free one; leave --port out for any");
    server_.set_payload_max_length(0);
    server_.set_keep_alive_max_count(1);  // A connection that is kept keeps one of a few threads.
    server_.set_pre_routing_handler(
        [this](const auto& request, auto& response) { return admit(request, response); });
    server_.Get("/", [this](const auto&, auto& response) {
      response.set_content(report_page(read(), PageKind::kLive), "text/html; charset=utf-8");
    });
    server_.Get("/data.json", [this](const auto& request, auto& response) { send_data(request, response); });
    server_.set_exception_handler([](const auto&, auto& response, std::exception_ptr) {
      response.status = 503;  // A folder that is being replaced, say: the page asks again.
      response.set_content("the run cannot be read just now\n", "text/plain; charset=utf-8");
    });
  }

  std::string address() const {
    return std::string("http://") + kLoopback + ":" + std::to_string(port_) + "/";
  }

  // Until a signal asks for the end.
  void serve() {
    StopSignals stop;
    std::thread server([this] { server_.listen_after_bind(); });
    pollfd wait{.fd = stop.fd(), .events = POLLIN, .revents = 0};
    while (!stop.take()) ::poll(&wait, 1, -1);
    server_.stop();
    server.join();
  }

 private:
  Json read() const { return page_data(read_reported_runs({folder_}), {run_command, compare_command}); }

  // A page of another site may have its name resolve to this machine; its requests still carry that name.
  httplib::Server::HandlerResponse admit(const httplib::Request& request, httplib::Response& response) const {
    const std::string host = request.get_header_value("Host"), port = ":" + std::to_string(port_);
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    if (host == kLoopback + port || host == "localhost" + port)
      return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    response.set_content("this server answers to " + std::string(kLoopback) + " and localhost alone\n",
                         "text/plain; charset=utf-8");
    return httplib::Server::HandlerResponse::Handled;
  }

  void send_data(const httplib::Request& request, httplib::Response& response) const {
    const std::string text = json_for_page(read());
    const std::string tag = "\"" + std::to_string(Hash().add(text).value()) + "\"";
    response.set_header("ETag", tag);
    if (request.get_header_value("If-None-Match") == tag)
      response.status = 304;
    else
      response.set_content(text, "application/json");
  }

  std::filesystem::path folder_;
  httplib::Server server_;
  int port_;
};

}  // namespace

Run add_watch(CLI::App& verb) {
  struct Arguments {
    std::string folder;
    int port = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  verb.add_option("folder", arguments->folder, "Run folder, or one that `compare` made.");
  verb.add_option("--port", arguments->port, "Port of 127.0.0.1; 0 for a free one.")
      ->check(CLI::Range(0, 65535));
  return [arguments] {
    if (arguments->folder.empty())
      throw UsageError("watch: no folder, expected a run's (train --out FOLDER)");
    LivePage page(arguments->folder, arguments->port);
    std::cout << "Watching " << arguments->folder << " at " << page.address() << " (Ctrl-C ends)"
              << std::endl;
    page.serve();
    return 0;
  };
}

}  // namespace accordion::cli
