# The library for other projects: headers, static libraries, the shared one for C, find_package(normlab) and pkg-config.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/normlab)
set_target_properties(normlab_core PROPERTIES EXPORT_NAME core)
set(libraries normlab_core)
set(headers_of_layers ${core_layers})
if(NORMLAB_TORCH)
  set_target_properties(normlab_torch PROPERTIES EXPORT_NAME torch)
  set_target_properties(normlab_c PROPERTIES EXPORT_NAME c)
  list(APPEND libraries normlab_torch normlab_c)
  list(APPEND headers_of_layers ${torch_layers})
  install(FILES cmake/libtorch.cmake DESTINATION ${package_folder})
  target_include_directories(normlab_c INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(FILES src/normlab/c/normlab.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/normlab)
endif()
install(TARGETS ${libraries} EXPORT normlabTargets ARCHIVE LIBRARY)
install(EXPORT normlabTargets NAMESPACE normlab:: DESTINATION ${package_folder})
foreach(layer ${headers_of_layers})
  install(DIRECTORY src/normlab/${layer}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/normlab/${layer}
          FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE)
endforeach()

configure_package_config_file(cmake/normlabConfig.cmake.in ${CMAKE_BINARY_DIR}/normlabConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/normlabConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/normlabConfig.cmake ${CMAKE_BINARY_DIR}/normlabConfigVersion.cmake
        DESTINATION ${package_folder})
# At install time, when the prefix is known.
install(CODE "
  set(CMAKE_INSTALL_LIBDIR ${CMAKE_INSTALL_LIBDIR})
  set(CMAKE_INSTALL_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
  set(PROJECT_VERSION ${PROJECT_VERSION})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/normlab.pc.in ${CMAKE_BINARY_DIR}/normlab.pc @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/normlab.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
