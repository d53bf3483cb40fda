// The matrix products of a training step by the libraries that have them, side by side with ours, as shares of the
// peak: what docs/kernels.md says of them. Not part of the build; after `make build`, with libdnnl-dev,
// libblis-openmp-dev and libxsmm-dev of Debian:
//
//   g++ -std=c++20 -O2 -Isrc bench/products.cpp build/libnormlab_core.a -ldnnl -lxsmm -lxsmmnoblas -lhwy -o products
//
//   OMP_NUM_THREADS=1 ./products LIBTORCH_CPU.SO LIBBLIS.SO.4 [rounds]
//
// Every thread runs its own products, as the threads of the stepper do. Weights are packed once where a library can.
#include <dlfcn.h>
#include <libxsmm.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace {

using Floats = std::vector<float>;
using Product = std::function<void()>;

struct Shape {
  const char* config;
  int rows, in, out;
};
// Rows are what a thread works on at a time.
constexpr Shape shapes[] = {
    {"L", 1024, 384, 1152}, {"L", 1024, 384, 384}, {"L", 1024, 384, 1536}, {"L", 1024, 1536, 384},
    {"S", 384, 128, 384},   {"S", 384, 128, 128},  {"S", 384, 128, 512},   {"S", 384, 512, 128},
};
enum Kind { forward, backward, weight, kinds };
constexpr const char* kind_names[] = {"y = x W^T", "dx = dy W", "dW = dy^T x"};

Floats filled(size_t size) {
  Floats values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 17) / 17.0F - 0.5F;
  return values;
}

// Operands of a thread: c [m, n] = a b with a [m, k] or, transposed, [k, m].
struct Operands {
  int m, n, k;
  bool a_transposed, b_transposed;
  Floats a, b, c;
};

Operands operands(const Shape& s, Kind kind) {
  const auto make = [](int m, int n, int k, bool at, bool bt) {
    return Operands{m, n, k, at, bt, filled(size_t(m) * k), filled(size_t(k) * n), Floats(size_t(m) * n)};
  };
  if (kind == forward) return make(s.rows, s.out, s.in, false, true);
  if (kind == backward) return make(s.rows, s.in, s.out, false, false);
  return make(s.out, s.in, s.rows, true, false);
}

Product ours(Operands& o) {
  using namespace normlab;
  const auto m = size_t(o.m), n = size_t(o.n), k = size_t(o.k);
  if (o.a_transposed)
    return [&o, m, n, k] { matmul_transposed({o.a.data(), k, m, m, 1}, {o.b.data(), k, n, n, 1}, false, o.c.data()); };
  std::shared_ptr<float> packed(static_cast<float*>(std::aligned_alloc(64, (packed_floats(k, n) * 4 + 63) / 64 * 64)),
                                std::free);
  const MatrixView stored{o.b.data(), o.b_transposed ? n : k, o.b_transposed ? k : n, o.b_transposed ? k : n, 1};
  pack_matrix(o.b_transposed ? stored.transposed() : stored, packed.get());
  return [&o, m, n, k, packed] { matmul_packed({o.a.data(), m, k, k, 1}, packed.get(), n, false, o.c.data()); };
}

using Sgemm = void(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
                   const float*, const int*, const float*, float*, const int*);

Sgemm* sgemm_of(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle ? dlsym(handle, "sgemm_") : nullptr;
  if (!symbol) std::fprintf(stderr, "no sgemm_ in %s: %s\n", library, dlerror()), std::exit(2);
  return reinterpret_cast<Sgemm*>(symbol);
}

// BLAS has columns where we have rows: c^T = b^T a^T.
Product blas(Sgemm* sgemm, Operands& o) {
  return [sgemm, &o] {
    const float one = 1.0F, zero = 0.0F;
    const int ldb = o.b_transposed ? o.k : o.n, lda = o.a_transposed ? o.m : o.k;
    sgemm(o.b_transposed ? "T" : "N", o.a_transposed ? "T" : "N", &o.n, &o.m, &o.k, &one, o.b.data(), &ldb, o.a.data(),
          &lda, &zero, o.c.data(), &o.n);
  };
}

Product onednn(Operands& o, bool blocked) {
  using namespace dnnl;
  using tag = memory::format_tag;
  const engine cpu(engine::kind::cpu, 0);
  const auto desc = [](int rows, int cols, tag t) { return memory::desc({rows, cols}, memory::data_type::f32, t); };
  const auto a = desc(o.m, o.k, o.a_transposed ? tag::ba : tag::ab), c = desc(o.m, o.n, tag::ab),
             plain = desc(o.k, o.n, o.b_transposed ? tag::ba : tag::ab);
  const matmul::primitive_desc plan(matmul::desc(a, blocked ? desc(o.k, o.n, tag::any) : plain, c), cpu);
  memory b(plain, cpu, o.b.data());
  stream queue(cpu);
  if (blocked) {
    memory packed(plan.weights_desc(), cpu);
    reorder(b, packed).execute(queue, b, packed);
    b = packed;
  }
  const memory left(a, cpu, o.a.data()), out(c, cpu, o.c.data());
  return [product = matmul(plan), queue, left, b, out]() mutable {
    product.execute(queue, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, out}});
    queue.wait();
  };
}

// Its kernels are for small matrices; panels of 64 columns of b, packed once, are the first factor of theirs.
Product libxsmm(Operands& o) {
  constexpr int width = 64;
  if (o.a_transposed) {  // both factors are new, so nothing is packed; k in pieces that stay in the cache
    constexpr int depth = 128;
    const int ldb = o.n, lda = o.m, ldc = o.n, flags = LIBXSMM_GEMM_FLAG_TRANS_B;
    const float one = 1.0F, zero = 0.0F;
    const auto first = libxsmm_smmdispatch(width, width, depth, &ldb, &lda, &ldc, &one, &zero, &flags, nullptr),
               next = libxsmm_smmdispatch(width, width, depth, &ldb, &lda, &ldc, &one, &one, &flags, nullptr);
    return first && next ? Product([&o, first, next] {
      for (int k = 0; k < o.k; k += depth)
        for (int j = 0; j < o.n; j += width)
          for (int i = 0; i < o.m; i += width)
            (k ? next : first)(&o.b[size_t(k) * o.n + j], &o.a[size_t(k) * o.m + i], &o.c[size_t(i) * o.n + j]);
    })
                         : Product();
  }
  auto packed = std::make_shared<Floats>(size_t(o.k) * o.n);
  for (int j = 0; j < o.n; ++j)
    for (int k = 0; k < o.k; ++k)
      (*packed)[size_t(j / width) * width * o.k + size_t(k) * width + j % width] =
          o.b_transposed ? o.b[size_t(j) * o.k + k] : o.b[size_t(k) * o.n + j];
  const int lda = width, ldb = o.k, ldc = o.n, rows = 32;
  const float one = 1.0F, zero = 0.0F;
  const auto kernel = libxsmm_smmdispatch(width, rows, o.k, &lda, &ldb, &ldc, &one, &zero, nullptr, nullptr);
  if (!kernel) return {};
  return [&o, packed, kernel, rows] {
    for (int i = 0; i < o.m; i += rows)
      for (int j = 0; j < o.n; j += width)
        kernel(&(*packed)[size_t(j) * o.k], &o.a[size_t(i) * o.k], &o.c[size_t(i) * o.n + j]);
  };
}

double seconds_of(const std::vector<Product>& products, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (const Product& product : products)
    threads.emplace_back([&product, repeats] {
      for (int i = 0; i < repeats; ++i) product();
    });
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
}

double largest_difference(const Floats& a, const Floats& b) {
  double largest = 0.0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  return largest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: products LIBTORCH_CPU.SO LIBBLIS.SO.4 [rounds]\n"), 2;
  Sgemm *mkl = sgemm_of(argv[1]), *blis = sgemm_of(argv[2]);
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 20;
  const std::vector<std::pair<std::string, std::function<Product(Operands&)>>> libraries = {
      {"ours", ours},
      {"MKL", [=](Operands& o) { return blas(mkl, o); }},
      {"oneDNN", [](Operands& o) { return onednn(o, false); }},
      {"oneDNN blocked", [](Operands& o) { return o.a_transposed ? Product() : onednn(o, true); }},
      {"BLIS", [=](Operands& o) { return blas(blis, o); }},
      {"libxsmm", libxsmm},
  };
  for (const int threads : {1, 2}) {
    const double peak = normlab::measured_peak(threads, 1.0);
    std::printf("%d thread%s, peak %.0f GFLOP/s; share of it in the fastest of %d rounds\n%-7s%-18s%-13s", threads,
                threads > 1 ? "s" : "", peak / 1e9, rounds, "config", "rows x in x out", "product");
    for (const auto& [name, make] : libraries) std::printf("%16s", name.c_str());
    std::printf("\n");
    for (const Shape& shape : shapes)
      for (int kind = 0; kind < kinds; ++kind) {
        // A set of operands for each library and thread; theirs must agree with ours.
        std::vector<std::vector<Operands>> sets(libraries.size());
        std::vector<std::vector<Product>> products(libraries.size());
        for (size_t l = 0; l < libraries.size(); ++l) {
          for (int t = 0; t < threads; ++t) sets[l].push_back(operands(shape, Kind(kind)));
          for (Operands& o : sets[l]) products[l].push_back(libraries[l].second(o));
          if (!products[l].front()) continue;
          products[l].front()();
          if (largest_difference(sets[l].front().c, sets[0].front().c) > 1e-3)
            return std::fprintf(stderr, "%s differs from ours\n", libraries[l].first.c_str()), 1;
        }
        const double work = 2.0 * shape.rows * shape.in * shape.out * threads;
        const int repeats = std::max(1, static_cast<int>(4e9 * threads / work / 4));
        std::vector<double> best(libraries.size(), 1e30);
        for (int round = 0; round < rounds; ++round)
          for (size_t l = 0; l < libraries.size(); ++l)
            if (products[l].front()) best[l] = std::min(best[l], seconds_of(products[l], repeats));
        std::printf("%-7s%5d x %4d x %4d %-13s", shape.config, shape.rows, shape.in, shape.out, kind_names[kind]);
        for (double seconds : best)
          seconds < 1e29 ? std::printf("%14.0f %%", 100.0 * work / seconds / peak) : std::printf("%16s", "");
        std::printf("\n");
        std::fflush(stdout);
      }
  }
}
