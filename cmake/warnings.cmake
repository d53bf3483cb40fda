# The warnings every file of ours is compiled with.
add_library(normlab_warnings INTERFACE)
target_compile_options(normlab_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
