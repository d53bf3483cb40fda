// The HTTP server: GET and HEAD of pages, POST of their forms, on few resources, whatever clients do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "normlab/serve/answer.h"

namespace normlab {

struct ServerAddress {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
};

bool is_loopback(const std::string& host);
// Whether a Host header may be answered: a page on another site cannot give its own name to this server (DNS
// rebinding). Of a server on loopback that is localhost or a loopback address; of another one an IP address, the name
// that it was told or the machine's own. The port does not matter: a tunnel may change it.
bool host_is_allowed(std::string_view host, const std::string& served);

// Answers from its own threads while it lives. A connection has seconds to send its request and to take the answer,
// fewer when there are many.
class HttpServer {
 public:
  using Handler = std::function<Answer(const std::string& path)>;
  struct Handlers {
    Handler get;
    Handler post;  // of forms of our own pages; others are refused before
  };
  HttpServer(const ServerAddress& address, Handlers handlers);  // UsageError when the port cannot be had
  ~HttpServer();

  int port() const;
  std::string link() const;  // "http://127.0.0.1:8750/"

 private:
  class Implementation;
  std::unique_ptr<Implementation> server_;
};

}  // namespace normlab
