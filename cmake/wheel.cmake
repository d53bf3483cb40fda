# The Python package. Its modules are in python/normlab, its operators in one library that PyTorch loads. The build
# folder holds a working copy, python/normlab, for the tests; a wheel (pyproject.toml) installs the components `python`
# and `program` into its package folder, site-packages/normlab.

# A wheel is built with the torch of its environment, and finds it there by its place beside the package. -I: not the
# packages of an isolated build.
if(SKBUILD)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -I -c
            "import importlib.util as u; print(*(u.find_spec('torch') or exit()).submodule_search_locations)"
    OUTPUT_VARIABLE torch_of_environment OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT torch_of_environment AND NOT TORCH_DIR)
    message(FATAL_ERROR "no torch in the environment of ${Python_EXECUTABLE}. Install it first: pip install torch")
  endif()
  set(TORCH_DIR "${torch_of_environment}" CACHE PATH "folder of a libtorch or of a torch wheel")
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH OFF)
  set(SKBUILD_SCRIPTS_DIR ${SKBUILD_SCRIPTS_DIR})
endif()

function(add_python_package)
  set(package ${CMAKE_BINARY_DIR}/python/normlab)
  layer_sources(sources ${normlab_sources} pytorch)
  add_library(normlab_ops MODULE ${sources})
  target_link_libraries(normlab_ops PRIVATE normlab_torch normlab_warnings)
  target_link_options(normlab_ops PRIVATE -Wl,--exclude-libs,ALL)  # no symbol of ours beside those of other extensions
  set_target_properties(normlab_ops PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package})
  if(NORMLAB_JOIN)
    set_target_properties(normlab_ops PROPERTIES UNITY_BUILD ON)
  endif()
  if(SKBUILD)
    set_target_properties(normlab_ops PROPERTIES INSTALL_RPATH "$ORIGIN/../torch/lib")
    set_target_properties(normlab-torch PROPERTIES INSTALL_RPATH "$ORIGIN/../../../torch/lib")
  endif()

  file(MAKE_DIRECTORY ${package})
  file(GLOB modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/normlab/*)
  foreach(module ${modules})
    get_filename_component(name ${module} NAME)
    file(CREATE_LINK ${module} ${package}/${name} SYMBOLIC)
  endforeach()
  file(CONFIGURE OUTPUT ${package}/_build.py CONTENT
       "\"\"\"What this copy of the package was built from and with; written by CMake.\"\"\"\n\
version = \"${PROJECT_VERSION}\"\ntorch_version = \"${torch_version}\"\n")

  install(TARGETS normlab_ops LIBRARY DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES ${package}/_build.py DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
  if(SKBUILD)
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/python/command.py DESTINATION ${SKBUILD_SCRIPTS_DIR} RENAME normlab
            COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endfunction()
