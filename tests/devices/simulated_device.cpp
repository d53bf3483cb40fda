#include "devices/simulated_device.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

namespace normlab {
namespace {

using at::Tensor;

constexpr auto device_type = c10::DeviceType::PrivateUse1;

std::atomic<int64_t> host_reads = 0;
thread_local bool inside_operator = false;

// Every allocation has pages of its own, closed unless a copy is at work on it.
class Memory {
 public:
  void* allocate(size_t bytes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t size = (bytes + page - 1) / page * page;
    void* const at = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(at != MAP_FAILED, "the simulated device is out of memory");
    const std::lock_guard lock(mutex_);
    blocks_[at] = {size, 0};
    return at;
  }
  void release(void* at) {
    const std::lock_guard lock(mutex_);
    ::munmap(at, blocks_.at(at).size);
    blocks_.erase(at);
  }
  void open(void* at) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_.at(at);
    if (block.users++ == 0) ::mprotect(at, block.size, PROT_READ | PROT_WRITE);
  }
  void close(void* at) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_.at(at);
    if (--block.users == 0) ::mprotect(at, block.size, PROT_NONE);
  }

 private:
  struct Block {
    size_t size;
    int users;
  };
  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};

Memory& memory() {
  static auto* const own = new Memory;  // tensors may outlive it otherwise
  return *own;
}

struct DeviceAllocator : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(device_type, 0);
    if (bytes == 0) return {nullptr, device};
    void* const at = memory().allocate(bytes);
    return {at, at, [](void* block) { memory().release(block); }, device};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* block) { memory().release(block); };
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};
DeviceAllocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator)

struct Hooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
};
[[maybe_unused]] const bool registered = [] {
  c10::register_privateuse1_backend("privateuseone");  // autograd asks for streams of a backend with a name
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

struct Guard : c10::impl::NoOpDeviceGuardImpl<device_type> {
  c10::Device getDevice() const override { return {device_type, 0}; }
  c10::Device exchangeDevice(c10::Device) const override { return {device_type, 0}; }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(device_type, 0));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// The tensor as the CPU sees it, while this object lives.
class Opened {
 public:
  explicit Opened(const Tensor& tensor) {
    void* const base = tensor.is_cpu() ? nullptr : tensor.storage().data_ptr().get();
    if (base) memory().open(base_ = base);
    const size_t offset = static_cast<size_t>(tensor.storage_offset()) * tensor.element_size();
    view = base ? at::from_blob(static_cast<char*>(base) + offset, tensor.sizes(), tensor.strides(),
                                tensor.options().device(c10::kCPU))
                : tensor;
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    if (base_) memory().close(base_);
  }

  Tensor view;

 private:
  void* base_ = nullptr;
};

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
             std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  if (to.is_cpu() && !inside_operator) ++host_reads;
  if (from.numel() > 0) Opened(to).view.copy_(Opened(from).view);
  return to;
}

const Tensor& resize(const Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const size_t bytes = static_cast<size_t>(self.numel()) * self.element_size();
  const c10::Storage& storage = self.storage();
  if (bytes > storage.nbytes()) {
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(allocator.allocate(bytes));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
  return self;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar read_scalar(const Tensor& self) {
  if (!inside_operator) ++host_reads;
  return Opened(self).view.item();
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const bool outer = std::exchange(inside_operator, true);
  at::native::cpu_fallback(op, stack);
  inside_operator = outer;
}

}  // namespace

int64_t reads_by_host() { return host_reads; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, kernels) {
  kernels.impl("empty.memory_format", &empty);
  kernels.impl("empty_strided", &empty_strided);
  kernels.impl("_copy_from", &copy_from);
  kernels.impl("_copy_from_and_resize", &copy_from_and_resize);
  kernels.impl("_local_scalar_dense", &read_scalar);
  kernels.impl("resize_", &resize);
  kernels.impl("as_strided", &at::native::as_strided_tensorimpl);
  kernels.impl("view", &at::native::view);
  kernels.impl("_reshape_alias", &at::native::_reshape_alias);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, every_other) {
  every_other.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace normlab
