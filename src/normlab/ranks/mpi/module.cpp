// normlab-mpi.so: RankGroup over MPI. A thread of its own makes all calls of MPI, so that sums progress while the
// caller computes, and tells the other ranks every second that this one is alive.
#define OMPI_SKIP_MPICXX  // the bindings for C++ that MPI itself has dropped
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "normlab/ranks/ranks.h"

namespace normlab {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto beat_interval = 1s;
constexpr auto silence = 6s;     // of a rank that counts as dead
constexpr auto busy_nap = 20us;  // between two looks at messages under way: spinning would take the core of a trainer
constexpr auto idle_nap = 2ms;
constexpr auto head_start = 3s;  // of rank 0, which says what all ranks would say
constexpr int beat_tag = 1;

struct Command {
  enum class Kind { sum, gather, end } kind = Kind::end;
  float* values = nullptr;
  size_t count = 0;
  std::string bytes = {};
  std::vector<std::string>* answers = nullptr;
};

// Messages of "I am alive" between rank 0 and every other.
class Beats {
 public:
  void open(int rank, int size) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    const auto now = Clock::now();
    for (int peer = rank == 0 ? 1 : 0; peer < (rank == 0 ? size : 1); ++peer) peers_.push_back({peer, now});
    next_ = now;
  }
  // The rank that was silent for too long, or -1.
  int exchange() {
    const auto now = Clock::now();
    for (Peer& peer : peers_) {
      int there = 0;
      char beat = 0;
      while (MPI_Iprobe(peer.rank, beat_tag, comm_, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && there) {
        MPI_Recv(&beat, 1, MPI_CHAR, peer.rank, beat_tag, comm_, MPI_STATUS_IGNORE);
        peer.heard = now;
      }
      if (now - peer.heard > silence) return peer.rank;
      int sent = 1;
      if (peer.sending != MPI_REQUEST_NULL) MPI_Test(&peer.sending, &sent, MPI_STATUS_IGNORE);
      if (now >= next_ && sent) MPI_Isend(&beat_, 1, MPI_CHAR, peer.rank, beat_tag, comm_, &peer.sending);
    }
    if (now >= next_) next_ = now + beat_interval;
    return -1;
  }
  bool due() const { return Clock::now() >= next_; }

 private:
  struct Peer {
    int rank;
    Clock::time_point heard;
    MPI_Request sending = MPI_REQUEST_NULL;
  };
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Peer> peers_;
  Clock::time_point next_;
  char beat_ = 1;
};

class MpiRanks : public RankGroup {
 public:
  MpiRanks() : thread_([this] { serve(); }) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return ready_; });
  }
  ~MpiRanks() override {
    submit({.kind = Command::Kind::end});
    thread_.join();
  }
  const std::string& problem() const { return problem_; }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host(int rank) const override { return hosts_[static_cast<size_t>(rank)]; }
  void start_sum(float* values, size_t count) override {
    submit({.kind = Command::Kind::sum, .values = values, .count = count});
  }
  void finish_sums() override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
  }
  std::vector<std::string> gather(const std::string& bytes) override {
    std::vector<std::string> answers;
    submit({.kind = Command::Kind::gather, .bytes = bytes, .answers = &answers});
    finish_sums();
    return answers;
  }
  void fail(const std::string& what, int exit_code) override {
    if (rank_ != 0) std::this_thread::sleep_for(head_start);
    end_all(what, exit_code);
  }

 private:
  void submit(Command command) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(command));
      ++pending_;
    }
    wanted_.notify_one();
  }

  // One write, so that lines of ranks do not mix. MPI may be unable to reach the others: then this rank at least ends.
  [[noreturn]] void end_all(const std::string& what, int exit_code) {
    const std::string line = "error [rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " on " +
                             hosts_[static_cast<size_t>(rank_)] + "] " + what + "\n";
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) {
    }
    std::thread([exit_code] {
      std::this_thread::sleep_for(2s);
      ::_exit(exit_code);
    }).detach();
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    ::_exit(exit_code);
  }

  void serve() {
    if (open()) {
      while (!end_) {
        start_commands();
        complete();
        beat();
      }
      close();
    }
  }

  bool open() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (provided < MPI_THREAD_FUNNELED) problem_ = "this MPI does not support threads";
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    std::vector<char> names(static_cast<size_t>(size_) * sizeof name);
    MPI_Allgather(name, sizeof name, MPI_CHAR, names.data(), sizeof name, MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < size_; ++i) hosts_.emplace_back(names.data() + static_cast<size_t>(i) * sizeof name);
    beats_.open(rank_, size_);
    const std::lock_guard lock(mutex_);
    ready_ = true;
    done_.notify_all();
    return problem_.empty();
  }

  void close() {
    MPI_Request barrier = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    wait_for(barrier);
    MPI_Finalize();
  }

  // A collective of which the answer is needed at once.
  void wait_for(MPI_Request& request) {
    for (int there = 0; !there;) {
      MPI_Test(&request, &there, MPI_STATUS_IGNORE);
      if (there) return;
      std::this_thread::sleep_for(busy_nap);
      beat();
    }
  }

  void start_commands() {
    std::unique_lock lock(mutex_);
    if (queue_.empty() && sums_.empty()) wanted_.wait_for(lock, idle_nap, [this] { return !queue_.empty(); });
    while (!queue_.empty()) {
      Command command = std::move(queue_.front());
      if (command.kind != Command::Kind::sum && !sums_.empty()) return;  // first come, first served
      queue_.pop_front();
      lock.unlock();
      if (command.kind == Command::Kind::end) end_ = true;
      if (command.kind == Command::Kind::gather) *command.answers = gather_now(command.bytes), finished(1);
      if (command.kind == Command::Kind::sum) {
        sums_.emplace_back();
        MPI_Iallreduce(MPI_IN_PLACE, command.values, static_cast<int>(command.count), MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, &sums_.back());
      }
      lock.lock();
    }
  }

  void complete() {
    if (sums_.empty()) return;
    size_t done = 0;
    for (MPI_Request& request : sums_) {
      int there = 0;
      if (request != MPI_REQUEST_NULL) MPI_Test(&request, &there, MPI_STATUS_IGNORE);
      done += request == MPI_REQUEST_NULL;
    }
    if (done == sums_.size())
      sums_.clear(), finished(done);
    else
      std::this_thread::sleep_for(busy_nap);
  }

  std::vector<std::string> gather_now(const std::string& bytes) {
    const int own = static_cast<int>(bytes.size());
    std::vector<int> sizes(static_cast<size_t>(size_)), starts(sizes.size());
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD, &request);
    wait_for(request);
    int total = 0;
    for (size_t i = 0; i < sizes.size(); ++i) starts[i] = total, total += sizes[i];
    std::string all(static_cast<size_t>(total), '\0');
    if (total > 0) {
      MPI_Iallgatherv(bytes.data(), own, MPI_CHAR, all.data(), sizes.data(), starts.data(), MPI_CHAR, MPI_COMM_WORLD,
                      &request);
      wait_for(request);
    }
    std::vector<std::string> parts;
    for (size_t i = 0; i < sizes.size(); ++i)
      parts.push_back(all.substr(static_cast<size_t>(starts[i]), static_cast<size_t>(sizes[i])));
    return parts;
  }

  void finished(size_t count) {
    const std::lock_guard lock(mutex_);
    pending_ -= count;
    done_.notify_all();
  }

  void beat() {
    if (Clock::now() < next_look_) return;
    next_look_ = Clock::now() + 100ms;
    const int silent = beats_.exchange();
    if (silent >= 0)
      end_all(name_of_silent(silent) +
                  " has not been heard for 6 s: its process was stopped or killed, or the network between the two is "
                  "cut. The last checkpoint is intact; the same command with --resume continues.",
              1);
  }
  std::string name_of_silent(int rank) const {
    return "rank " + std::to_string(rank) + " on " + hosts_[static_cast<size_t>(rank)];
  }

  int rank_ = 0, size_ = 1;
  std::vector<std::string> hosts_;
  std::string problem_;
  Beats beats_;
  Clock::time_point next_look_ = Clock::now();
  std::deque<MPI_Request> sums_;  // under way
  bool end_ = false;

  std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::deque<Command> queue_;
  size_t pending_ = 0;  // commands that have not been answered
  bool ready_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

extern "C" __attribute__((visibility("default"))) RankGroup* normlab_open_ranks(std::string& problem) {
  auto* ranks = new MpiRanks;
  problem = ranks->problem();
  return problem.empty() ? ranks : nullptr;
}

}  // namespace normlab
