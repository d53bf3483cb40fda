// Ranks as threads of one process, for tests.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "normlab/ranks/ranks.h"

namespace normlab {

// What the ranks exchange: each call waits until all have made it.
class Meeting {
 public:
  explicit Meeting(int size) : said_(static_cast<size_t>(size)) {}

  std::vector<std::string> exchange(int rank, std::string bytes) {
    std::unique_lock lock(mutex_);
    all_left_.wait(lock, [&] { return leaving_ == 0; });
    said_[static_cast<size_t>(rank)] = std::move(bytes);
    if (++arrived_ == said_.size()) leaving_ = std::exchange(arrived_, size_t{0}), all_here_.notify_all();
    all_here_.wait(lock, [&] { return leaving_ > 0; });
    std::vector<std::string> answers = said_;
    if (--leaving_ == 0) all_left_.notify_all();
    return answers;
  }
  size_t size() const { return said_.size(); }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_, all_left_;
  std::vector<std::string> said_;
  size_t arrived_ = 0, leaving_ = 0;
};

class ThreadRank : public RankGroup {
 public:
  ThreadRank(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank), host_("here") {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.size()); }
  const std::string& host(int) const override { return host_; }
  void start_sum(float* values, size_t count) override {
    const std::vector<std::string> all = exchange(values, count);
    std::fill(values, values + count, 0.0F);
    for (const std::string& each : all)
      for (size_t i = 0; i < count; ++i) values[i] += reinterpret_cast<const float*>(each.data())[i];
  }
  void start_copy(float* values, size_t count, int from) override {
    const std::string theirs = exchange(values, count)[static_cast<size_t>(from)];
    std::copy_n(reinterpret_cast<const float*>(theirs.data()), count, values);
  }
  void finish() override {}
  bool takes_device_memory() const override { return false; }
  std::vector<std::string> gather(const std::string& bytes) override { return meeting_.exchange(rank_, bytes); }
  Times times() const override { return {}; }
  [[noreturn]] void fail(const std::string& what, int) override { throw std::runtime_error(what); }

 private:
  std::vector<std::string> exchange(const float* values, size_t count) {
    return meeting_.exchange(rank_, std::string(reinterpret_cast<const char*>(values), count * sizeof(float)));
  }

  Meeting& meeting_;
  int rank_;
  std::string host_;
};

// The same work on every rank, each in a thread of its own.
inline void on_ranks(int size, const std::function<void(RankGroup&)>& work) {
  Meeting meeting(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ThreadRank own(meeting, rank);
      work(own);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace normlab
