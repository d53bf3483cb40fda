// Signs of life between rank 0 and every other rank.
#pragma once

#define OMPI_SKIP_MPICXX  // the bindings for C++ that MPI itself has dropped
#include <mpi.h>

#include <chrono>
#include <vector>

namespace normlab {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto beat_interval = 1s;
constexpr auto silence = 6s;  // of a rank that counts as dead
constexpr int beat_tag = 1;

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

}  // namespace normlab
