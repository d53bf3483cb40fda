// cpp-httplib with what it lacks: deadlines for whole requests, a bound on connections, and checks of who asks.
#include "normlab/serve/http_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <semaphore>
#include <thread>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr int most_connections = 256;  // a thread each, which mostly waits
constexpr size_t largest_request = 32 << 10;
constexpr int backlog = 512;
constexpr auto patience_when_idle = std::chrono::seconds(10), patience_when_busy = std::chrono::seconds(1);
constexpr int poll_ms = 100;  // between looks at the request to stop

using Clock = std::chrono::steady_clock;

// A socket whose reads, and then whose writes, have one deadline together.
class DeadlineStream : public httplib::Stream {
 public:
  DeadlineStream(int socket, Clock::duration patience, const std::atomic<bool>& stop)
      : socket_(socket), patience_(patience), stop_(stop), deadline_(Clock::now() + patience) {}

  bool is_readable() const override { return wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }
  ssize_t read(char* bytes, size_t size) override {
    if (taken_ >= largest_request || !wait(POLLIN)) return -1;
    const ssize_t count = ::recv(socket_, bytes, std::min(size, largest_request - taken_), 0);
    if (count > 0) taken_ += static_cast<size_t>(count);
    return count;
  }
  ssize_t write(const char* bytes, size_t size) override {
    if (!answering_) answering_ = true, deadline_ = Clock::now() + patience_;
    if (!wait(POLLOUT)) return -1;
    return ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short event) const {
    while (!stop_ && Clock::now() < deadline_) {
      pollfd waiting{.fd = socket_, .events = event, .revents = 0};
      const int ready = ::poll(&waiting, 1, poll_ms);
      if (ready > 0) return (waiting.revents & (event | POLLHUP)) != 0;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }

  int socket_;
  Clock::duration patience_;
  const std::atomic<bool>& stop_;
  Clock::time_point deadline_;
  size_t taken_ = 0;
  bool answering_ = false;
};

// Threads of the library's pool; who comes when all are busy waits in the queue of the system.
class BoundedQueue : public httplib::TaskQueue {
 public:
  explicit BoundedQueue(std::atomic<int>& busy) : busy_(busy) {}
  void enqueue(std::function<void()> task) override {
    free_.acquire();
    ++busy_;
    pool_.enqueue([this, task = std::move(task)] {
      task();
      --busy_;
      free_.release();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  std::atomic<int>& busy_;
  std::counting_semaphore<most_connections> free_{most_connections};
  httplib::ThreadPool pool_{most_connections};
};

bool is_address(const std::string& host) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

std::string small_letters(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// "[::1]:8750" and "localhost:8750" without the port and the brackets.
std::string host_name_in(std::string_view host) {
  if (host.starts_with('[')) return small_letters(host.substr(1, host.find(']') - 1));
  return small_letters(host.substr(0, host.find(':')));
}

std::string machine_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? small_letters(name) : "";
}

const char* phrase(int status) {
  return status == 403 ? "refused: this page is for its own address only" : status == 405 ? "only GET and HEAD" : "";
}

}  // namespace

bool is_loopback(const std::string& host) {
  unsigned char bytes[16];
  if (::inet_pton(AF_INET, host.c_str(), bytes) == 1) return bytes[0] == 127;
  return host == "::1" || host == "localhost";
}

bool host_is_allowed(std::string_view host, const std::string& served) {
  const std::string name = host_name_in(host);
  if (is_loopback(name)) return true;
  if (is_loopback(served)) return false;
  return is_address(name) || name == small_letters(served) || name == machine_name();
}

class HttpServer::Implementation : public httplib::Server {
 public:
  Implementation(const ServerAddress& address, HttpServer::Handlers handlers)
      : host_(address.host), handlers_(std::move(handlers)) {
    new_task_queue = [this] { return new BoundedQueue(busy_); };
    // The library's own setting lets two servers share a port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_payload_max_length(largest_request);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
      return HandlerResponse::Handled;
    });
    errno = 0;
    port_ = address.port == 0 ? bind_to_any_port(host_) : bind_to_port(host_, address.port) ? address.port : -1;
    if (port_ <= 0) refuse(address);
    ::listen(svr_sock_, backlog);  // once more: the library's queue is short
    thread_ = std::thread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::yield();
  }
  ~Implementation() override {
    stopping_ = true;
    stop();
    thread_.join();
  }

  int port() const { return port_; }
  std::string link() const {
    const bool v6 = host_.find(':') != std::string::npos;
    return concat("http://", v6 ? concat("[", host_, "]") : host_, ":", port_, "/");
  }

 private:
  [[noreturn]] static void refuse(const ServerAddress& address) {
    const int reason = errno;
    const std::string why = reason == 0 ? "the address is not known" : std::strerror(reason);
    throw UsageError(
        "--port", concat("cannot listen on ", address.host, " port ", address.port, ": ", why,
                         reason == EADDRINUSE ? ". Another program uses it; choose another --port, or 0 for a free one."
                                              : ". Check --host and --port."));
  }

  bool process_and_close_socket(socket_t socket) override {
    const bool busy = busy_ > most_connections / 2;
    DeadlineStream stream(socket, busy ? Clock::duration(patience_when_busy) : patience_when_idle, stopping_);
    bool closed = false;
    const bool done = process_request(stream, /*close_connection=*/true, closed, [](httplib::Request& request) {
      // On this machine compression only costs time.
      for (const char* header : {"Accept-Encoding", "Range"}) request.headers.erase(header);
    });
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return done;
  }

  // Who may ask: the address bar and the page itself, not a page of another site.
  bool is_foreign(const httplib::Request& request) const {
    const std::string host = request.get_header_value("Host"), origin = request.get_header_value("Origin");
    if (request.get_header_value_count("Host") != 1 || !host_is_allowed(host, host_)) return true;
    if (!origin.empty() && origin != concat("http://", host)) return true;
    return request.get_header_value("Sec-Fetch-Site") == "cross-site" &&
           request.get_header_value("Sec-Fetch-Mode") != "navigate";
  }

  void answer(const httplib::Request& request, httplib::Response& response) const {
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "same-origin");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cache-Control", "no-store");
    const auto fail = [&](int status) {
      response.status = status;
      response.set_content(concat(phrase(status), "\n"), "text/plain; charset=utf-8");
    };
    const bool is_post = request.method == "POST";
    // Browsers name the origin of every form.
    if (is_foreign(request) || (is_post && !request.has_header("Origin"))) return fail(403);
    const std::string path = request.target.substr(0, request.target.find_first_of("?#"));
    const bool known = is_post || request.method == "GET" || request.method == "HEAD";
    const Answer found = !known ? Answer{.status = 405} : is_post ? handlers_.post(path) : handlers_.get(path);
    if (found.status == 405) {
      response.set_header("Allow", "GET, HEAD");
      return fail(405);
    }
    response.status = found.status;
    response.set_header("Content-Security-Policy",
                        concat(found.policy, found.policy.empty() ? "" : "; ", "frame-ancestors 'none'"));
    response.set_header("Next-Look", fixed(found.next_look, 1));
    if (!found.tag.empty()) response.set_header("ETag", found.tag);
    if (!found.tag.empty() && request.get_header_value("If-None-Match") == found.tag) {
      response.status = 304;
      return;
    }
    if (!found.moved_to.empty()) response.set_header("Location", found.moved_to);
    if (!found.body) return;
    response.set_content_provider(found.body->size(), "text/html; charset=utf-8",
                                  [body = found.body](size_t from, size_t count, httplib::DataSink& sink) {
                                    return sink.write(body->data() + from, count);
                                  });
  }

  std::string host_;
  HttpServer::Handlers handlers_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> busy_ = 0;
  std::thread thread_;
};

HttpServer::HttpServer(const ServerAddress& address, Handlers handlers)
    : server_(std::make_unique<Implementation>(address, std::move(handlers))) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return server_->port(); }
std::string HttpServer::link() const { return server_->link(); }

}  // namespace normlab
