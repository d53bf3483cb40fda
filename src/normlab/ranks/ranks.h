// RankGroup: processes, on one machine or many, that train one model together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace normlab {

// What the ranks tell each other. Every rank makes the same calls in the same order.
class RankGroup {
 public:
  RankGroup() = default;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  virtual ~RankGroup() = default;  // waits for the others

  virtual int rank() const = 0;  // from 0; rank 0 writes files and speaks
  virtual int size() const = 0;
  virtual const std::string& host(int rank) const = 0;

  // Sums over the ranks in place, with the same bits on each. Returns at once; the values are not to be touched before
  // finish().
  virtual void start_sum(float* values, size_t count) = 0;
  // The values of rank `from` replace those of the others. Returns at once, too.
  virtual void start_copy(float* values, size_t count, int from) = 0;
  virtual void finish() = 0;
  // Whether sums and copies take memory of a GPU; else they must be given memory of the host.
  virtual bool takes_device_memory() const = 0;

  // What each rank says, in the order of the ranks, on all of them.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;

  // Of this rank so far, in seconds.
  struct Times {
    double waited = 0.0;           // for other ranks, in finish() and gather()
    double waited_for_sums = 0.0;  // the part of it that no computation hid
    double sums = 0.0;             // during which sums were under way
  };
  virtual Times times() const = 0;

  // Ends all ranks; `what` is printed with this rank and its host.
  [[noreturn]] virtual void fail(const std::string& what, int exit_code) = 0;
};

// The sum of a few numbers, added in the order of the ranks.
std::vector<double> sum(RankGroup& ranks, const std::vector<double>& values);
bool any(RankGroup& ranks, bool mine);
void wait_for_all(RankGroup& ranks);
std::string name_of(const RankGroup& ranks, int rank);  // "rank 3 on host"
int place_on_host(const RankGroup& ranks);              // of this rank among those of its host, from 0: its GPU

}  // namespace normlab
