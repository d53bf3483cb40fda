#include "normlab/serve/inspections.h"

#include <algorithm>

#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_inspections = 4;  // of up to 8 MB each

// Changes when inspecting again would give another page.
std::string checkpoints_of(const fs::path& run) {
  std::string text;
  std::error_code missing;
  for (const char* link : {"best", "latest"})
    text += concat(fs::read_symlink(run / "checkpoints" / link, missing).string(), "\n");
  return text;
}

}  // namespace

Inspections::~Inspections() {
  stop_ = true;
  if (worker_.joinable()) worker_.join();
}

const Inspections::Kept* Inspections::find(const fs::path& run) const {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.run == run; });
  return found == kept_.end() ? nullptr : &*found;
}

Inspection Inspections::of(const fs::path& run) const {
  const std::lock_guard lock(mutex_);
  const Kept* found = find(run);
  return found ? found->found : Inspection{};
}

bool Inspections::is_computing() const {
  return !kept_.empty() && kept_.back().found.state == InspectionState::computing;
}

bool Inspections::busy() const {
  const std::lock_guard lock(mutex_);
  return is_computing();
}

void Inspections::start(const fs::path& run) {
  const std::lock_guard lock(mutex_);
  if (!possible() || is_computing()) return;
  std::string checkpoints = checkpoints_of(run);
  const Kept* known = find(run);
  if (known && known->found.state == InspectionState::done && known->checkpoints == checkpoints) return;
  if (worker_.joinable()) worker_.join();  // it has ended
  std::erase_if(kept_, [&](const Kept& each) { return each.run == run; });
  if (kept_.size() >= most_inspections) kept_.erase(kept_.begin());
  kept_.push_back({run, std::move(checkpoints), {.state = InspectionState::computing}});
  worker_ = std::thread([this, run] {
    try {
      finish({.state = InspectionState::done,
              .page = std::make_shared<const std::string>(compute_(run, [this] { return stop_.load(); }))});
    } catch (const std::exception& error) {
      finish({.state = InspectionState::failed, .problem = error.what()});
    }
  });
}

void Inspections::finish(const Inspection& found) {
  const std::lock_guard lock(mutex_);
  kept_.back().found = found;  // nothing was added meanwhile
}

}  // namespace normlab
