// normlab-mpi.so: RankGroup over MPI. A thread of its own makes all calls of MPI, so that sums progress while the
// caller computes, and tells the other ranks every second that this one is alive.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "normlab/ranks/mpi/beats.h"
#include "normlab/ranks/ranks.h"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // of Open MPI, after mpi.h: MPIX_Query_cuda_support
#endif

namespace normlab {
namespace {

constexpr auto busy_nap = 20us;  // between two looks at messages under way: spinning would take the core of a trainer
constexpr auto idle_nap = 2ms;
constexpr auto head_start = 3s;                  // of rank 0, which says what all ranks would say
constexpr size_t most_floats = size_t{1} << 30;  // of one call: MPI counts in int

struct Command {
  enum class Kind { sum, copy, gather, end } kind = Kind::end;
  float* values = nullptr;
  size_t count = 0;
  int from = 0;
  std::string bytes = {};
  std::vector<std::string>* answers = nullptr;
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
    summing_ = true;
    submit_pieces({.kind = Command::Kind::sum, .values = values, .count = count});
  }
  void start_copy(float* values, size_t count, int from) override {
    submit_pieces({.kind = Command::Kind::copy, .values = values, .count = count, .from = from});
  }
  void finish() override {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
    const double seconds = seconds_since(start);
    times_.waited += seconds;
    if (std::exchange(summing_, false)) times_.waited_for_sums += seconds;
  }
  bool takes_device_memory() const override {
#ifdef MPIX_CUDA_AWARE_SUPPORT
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
  }
  Times times() const override {
    const std::lock_guard lock(mutex_);
    return times_;
  }
  std::vector<std::string> gather(const std::string& bytes) override {
    std::vector<std::string> answers;
    submit({.kind = Command::Kind::gather, .bytes = bytes, .answers = &answers});
    finish();
    return answers;
  }
  void fail(const std::string& what, int exit_code) override {
    if (rank_ != 0) std::this_thread::sleep_for(head_start);
    end_all(what, exit_code);
  }

 private:
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void submit_pieces(Command command) {
    for (size_t left = command.count; left > 0; left -= command.count, command.values += command.count) {
      command.count = std::min(left, most_floats);
      submit(command);
    }
  }

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
    // Rabenseifner's algorithm: what Open MPI takes for sums in place sends every byte log2(n) times.
    ::setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", /*overwrite=*/0);
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
    if (queue_.empty() && under_way_.empty()) wanted_.wait_for(lock, idle_nap, [this] { return !queue_.empty(); });
    while (!queue_.empty()) {
      Command command = std::move(queue_.front());
      const bool transfer = command.kind == Command::Kind::sum || command.kind == Command::Kind::copy;
      if (!transfer && !under_way_.empty()) return;  // first come, first served
      queue_.pop_front();
      lock.unlock();
      if (command.kind == Command::Kind::end) end_ = true;
      if (command.kind == Command::Kind::gather) *command.answers = gather_now(command.bytes), finished(1);
      if (transfer) start_transfer(command);
      lock.lock();
    }
  }

  void start_transfer(const Command& command) {
    const bool sum = command.kind == Command::Kind::sum;
    if (sum && !sums_since_) sums_since_ = Clock::now();
    under_way_.emplace_back();
    const auto count = static_cast<int>(command.count);
    if (sum)
      MPI_Iallreduce(MPI_IN_PLACE, command.values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &under_way_.back());
    else
      MPI_Ibcast(command.values, count, MPI_FLOAT, command.from, MPI_COMM_WORLD, &under_way_.back());
  }

  void complete() {
    if (under_way_.empty()) return;
    size_t done = 0;
    for (MPI_Request& request : under_way_) {
      int there = 0;
      if (request != MPI_REQUEST_NULL) MPI_Test(&request, &there, MPI_STATUS_IGNORE);
      done += request == MPI_REQUEST_NULL;
    }
    if (done == under_way_.size())
      under_way_.clear(), finished(done);
    else
      std::this_thread::sleep_for(busy_nap);
  }

  // A few bytes go with their size, in one message.
  std::vector<std::string> gather_now(const std::string& bytes) {
    struct Head {
      int size;
      char bytes[60];
    } own{static_cast<int>(bytes.size()), {}};
    bytes.copy(own.bytes, sizeof own.bytes);
    std::vector<Head> heads(static_cast<size_t>(size_));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(&own, sizeof own, MPI_CHAR, heads.data(), sizeof own, MPI_CHAR, MPI_COMM_WORLD, &request);
    wait_for(request);
    std::vector<int> sizes, starts;
    int total = 0;
    for (const Head& head : heads) sizes.push_back(head.size), starts.push_back(total), total += head.size;
    const auto fits = [](int size) { return size <= static_cast<int>(sizeof Head::bytes); };
    std::vector<std::string> parts;
    if (std::all_of(sizes.begin(), sizes.end(), fits)) {
      for (const Head& head : heads) parts.emplace_back(head.bytes, static_cast<size_t>(head.size));
      return parts;
    }
    std::string all(static_cast<size_t>(total), '\0');
    MPI_Iallgatherv(bytes.data(), own.size, MPI_CHAR, all.data(), sizes.data(), starts.data(), MPI_CHAR, MPI_COMM_WORLD,
                    &request);
    wait_for(request);
    for (size_t i = 0; i < sizes.size(); ++i)
      parts.push_back(all.substr(static_cast<size_t>(starts[i]), static_cast<size_t>(sizes[i])));
    return parts;
  }

  void finished(size_t count) {
    const std::lock_guard lock(mutex_);
    if (sums_since_) times_.sums += seconds_since(*std::exchange(sums_since_, std::nullopt));
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
  std::deque<MPI_Request> under_way_;
  std::optional<Clock::time_point> sums_since_;  // of those under way
  bool end_ = false;
  bool summing_ = false;  // of the caller: sums were started since the last finish()

  mutable std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::deque<Command> queue_;
  size_t pending_ = 0;  // commands that have not been answered
  Times times_;
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
