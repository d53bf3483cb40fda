# The target `libtorch`: torch_cpu and c10 of a torch wheel or libtorch folder, with CUDA where that folder has all of it.
# find_package(Torch) is of no use with the wheel: it demands a CUDA toolkit.
# Also part of the installed package, which sets torch_pin and TORCH_DIR before.
if(NOT torch_pin)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tools/torch-requirements.txt torch_pin REGEX "^torch==")
  string(REGEX MATCH "[0-9.]+" torch_pin "${torch_pin}")
endif()
set(cache_home $ENV{XDG_CACHE_HOME})
if(NOT cache_home)
  set(cache_home $ENV{HOME}/.cache)
endif()
set(TORCH_DIR "${cache_home}/normlab/libtorch-${torch_pin}" CACHE PATH "folder of a libtorch or of a torch wheel")

foreach(candidate "${TORCH_DIR}" "${TORCH_DIR}/torch" "${TORCH_DIR}/libtorch")
  if(EXISTS "${candidate}/lib/libtorch_cpu.so" AND NOT torch_root)
    set(torch_root "${candidate}")
  endif()
endforeach()
if(NOT torch_root)
  message(FATAL_ERROR "no libtorch in TORCH_DIR='${TORCH_DIR}'; expected lib/libtorch_cpu.so below it. "
                      "`make build` fetches one; `make build TORCH_DIR=...` uses yours.")
endif()

# Where the version is defined differs from release to release.
file(GLOB version_headers ${torch_root}/include/torch/headeronly/version.h
     ${torch_root}/include/torch/csrc/api/include/torch/version.h)
set(torch_version)
foreach(header ${version_headers})
  file(STRINGS ${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  list(TRANSFORM lines REPLACE ".* " "")
  list(APPEND torch_version ${lines})
endforeach()
list(JOIN torch_version "." torch_version)
if(NOT torch_version VERSION_EQUAL torch_pin)
  message(WARNING "normlab is tested with libtorch ${torch_pin}; TORCH_DIR holds ${torch_version}.")
endif()

add_library(libtorch INTERFACE)
# What includes torch only calls libtorch and our kernels: nothing in it is hot, and -O1 compiles twice as fast.
target_compile_options(libtorch INTERFACE -O1)
target_include_directories(libtorch SYSTEM INTERFACE
  ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
set(torch_libraries ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so)

# A torch wheel without its nvidia packages has a CUDA library that cannot be loaded.
if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  execute_process(COMMAND ldd ${torch_root}/lib/libtorch_cuda.so OUTPUT_VARIABLE cuda_needs)
  if(NOT cuda_needs MATCHES "not found")
    list(APPEND torch_libraries ${torch_root}/lib/libtorch_cuda.so ${torch_root}/lib/libc10_cuda.so)
  endif()
endif()
message(STATUS "libtorch ${torch_version}: ${torch_libraries}")

# at::parallel_for runs on one thread unless the caller is compiled with OpenMP. There is one pool of threads:
# that of the libgomp torch brings, by its full path.
target_compile_options(libtorch INTERFACE -fopenmp)
file(GLOB torch_gomp ${torch_root}/lib/libgomp*.so*)
if(NOT torch_gomp)
  set(torch_gomp -fopenmp)
endif()
# The linker would drop libtorch_cuda: it is found through its static initialisers, not by a symbol.
target_link_options(libtorch INTERFACE -Wl,--no-as-needed)
target_link_libraries(libtorch INTERFACE ${torch_libraries} ${torch_gomp})
