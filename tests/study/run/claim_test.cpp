#include "normlab/study/run/claim.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Claims : public testing::Test {
 protected:
  Claims() {
    plan = make_plan(
        read_study({parse_setting("norm.scheme=lp"), parse_setting("norm.p=[2,3]"), parse_setting("data.fold=[0,1]")}),
        folder.path());
    std::filesystem::create_directories(trial().folder.parent_path());
  }
  const Trial& trial() const { return plan.trials[0]; }
  std::filesystem::path file(int number) const { return concat(trial().folder.string(), ".claim-", number); }
  // As a process of another machine leaves it.
  void claim_elsewhere(int number, int beat, int deaths = 0) {
    write_file_atomically(file(number), concat("normlab claim, running\nbeat ", beat, "\ndeaths ", deaths,
                                               "\npid 1\nstart 1\nhost far\nspace elsewhere\n"));
  }
  void finish(const Trial& ended) {
    std::filesystem::create_directories(ended.folder);
    write_file_atomically(ended.folder / "config.toml", to_toml(ended.config));
    write_file_atomically(ended.folder / "metrics.jsonl", "{\"step\":0,\"val_loss\":4.5}\n");
    write_record(ended, {.status = TrialStatus::finished});
  }
  static std::unique_ptr<TrialClaim> take(const Trial& trial, const ClaimView& view) {
    return TrialClaim::take(trial, view, [] {});
  }

  TemporaryFolder folder;
  Plan plan;
};

TEST_F(Claims, OnlyOneProcessGetsATrial) {
  ClaimWatch watch;
  const ClaimView free = watch.look(trial());
  EXPECT_EQ(free.state, ClaimState::free);
  auto claim = take(trial(), free);
  ASSERT_TRUE(claim);
  EXPECT_FALSE(take(trial(), free));
  EXPECT_EQ(watch.look(trial()).state, ClaimState::held);
  EXPECT_THAT([&] { claim_trial(trial(), {}); }, ThrowsMessage<Error>(HasSubstr("another process (pid")));
  claim.reset();
  EXPECT_EQ(watch.look(trial()).state, ClaimState::free);
  EXPECT_TRUE(take(trial(), watch.look(trial())));
}

TEST_F(Claims, ManyThreadsOneWinner) {
  std::atomic<int> winners = 0;
  std::vector<std::unique_ptr<TrialClaim>> claims(16);
  std::vector<std::thread> threads;
  for (auto& claim : claims) threads.emplace_back([&] { winners += static_cast<bool>(claim = take(trial(), {})); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_F(Claims, TheDeadOfThisMachineAreSeenAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto claim = take(trial(), {});
    ::_exit(0);  // without giving it back
  }
  ::waitpid(child, nullptr, 0);
  const ClaimView view = ClaimWatch().look(trial());
  EXPECT_EQ(view.state, ClaimState::dead);
  EXPECT_EQ(view.owner.find(concat("pid ", child, " on ")), 0);
  auto claim = take(trial(), view);
  ASSERT_TRUE(claim);
  EXPECT_EQ(ClaimWatch().look(trial()).deaths, 1);
  claim.reset();
  EXPECT_EQ(ClaimWatch().look(trial()).deaths, 0);
}

TEST_F(Claims, TheDeadOfOtherMachinesAreSilent) {
  claim_elsewhere(1, 0);
  ClaimWatch watch({.beat = 10s, .silence = 60s});
  const auto start = ClaimWatch::Clock::now();
  EXPECT_EQ(watch.look(trial(), start).state, ClaimState::unknown);
  EXPECT_EQ(watch.look(trial(), start + 59s).state, ClaimState::unknown);
  claim_elsewhere(1, 1);
  EXPECT_EQ(watch.look(trial(), start + 59s).state, ClaimState::held);
  EXPECT_EQ(watch.look(trial(), start + 118s).state, ClaimState::held);
  EXPECT_EQ(watch.look(trial(), start + 119s).state, ClaimState::dead);
  claim_elsewhere(2, 0);  // by another that saw the same
  EXPECT_EQ(watch.look(trial(), start + 119s).state, ClaimState::unknown);
}

TEST_F(Claims, AnOwnerBeatsAndLearnsThatItLostItsTrial) {
  std::atomic<bool> lost = false;
  const auto claim = TrialClaim::take(trial(), {}, [&] { lost = true; }, {.beat = 5ms, .silence = 1s});
  const std::string before = read_file(file(1));
  while (read_file(file(1)) == before) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(lost);
  claim_elsewhere(2, 0);
  for (int i = 0; i < 5000 && !lost; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(lost);
}

TEST_F(Claims, NoneIsLeftOfATrialThatEnded) {
  take(trial(), {}).reset();
  auto claim = take(trial(), ClaimWatch().look(trial()));
  EXPECT_TRUE(std::filesystem::exists(file(2)));
  finish(trial());
  claim.reset();
  EXPECT_FALSE(std::filesystem::exists(file(1)) || std::filesystem::exists(file(2)));
}

TEST_F(Claims, EachCallGetsAnotherTrial) {
  finish(plan.trials[1]);
  const auto first = next_trial(plan, {}), second = next_trial(plan, {}), third = next_trial(plan, {});
  ASSERT_TRUE(first.trial && second.trial && third.trial);
  EXPECT_EQ(std::set<const Trial*>({first.trial, second.trial, third.trial}).size(), 3u);
  EXPECT_FALSE(next_trial(plan, {}).trial);
  EXPECT_FALSE(next_trial(plan, {.wait = true, .stop = [] { return true; }}).trial);
}

TEST_F(Claims, ATrialThatKillsItsProcessesIsNotTriedForever) {
  claim_elsewhere(1, 0, /*deaths=*/2);
  for (size_t i = 1; i < plan.trials.size(); ++i) finish(plan.trials[i]);
  EXPECT_FALSE(next_trial(plan, {.times = {.beat = 1ms, .silence = 1ms}}).trial);
  EXPECT_EQ(read_trial(trial()).status, TrialStatus::crashed);
  EXPECT_THAT(read_trial(trial()).message, HasSubstr("died 3 times in a row"));
}

}  // namespace
}  // namespace normlab
