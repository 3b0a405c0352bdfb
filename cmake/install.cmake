# What `cmake --install build --prefix DIR` puts where: the programs with dashboard, manual page and
# shell completion, and the C++ client library with a package for find_package(npucClient).
include(GNUInstallDirs)

if(NOT NPUC_CORE_ONLY)
  install(TARGETS npuc npucd npuc-worker npuc-remote DESTINATION ${CMAKE_INSTALL_BINDIR})
  foreach(tool IN LISTS NPUC_COMPASS_TOOLS)  # links to npuc
    install(FILES "${PROJECT_BINARY_DIR}/bin/${tool}" DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
  # From ../share, where npucd looks for it; not there where the build had no npm.
  install(DIRECTORY "${PROJECT_BINARY_DIR}/bin/dashboard" DESTINATION share/npuc OPTIONAL)

  set(docs "${PROJECT_BINARY_DIR}/docs")
  file(MAKE_DIRECTORY "${docs}")
  add_custom_command(
    OUTPUT "${docs}/npuc-remote.1" "${docs}/npuc-remote.bash" "${docs}/_npuc-remote"
           "${docs}/npuc-remote.fish"
    COMMAND npuc-remote man > "${docs}/npuc-remote.1"
    COMMAND npuc-remote completion bash > "${docs}/npuc-remote.bash"
    COMMAND npuc-remote completion zsh > "${docs}/_npuc-remote"
    COMMAND npuc-remote completion fish > "${docs}/npuc-remote.fish"
    DEPENDS npuc-remote VERBATIM)
  add_custom_target(npuc_remote_docs ALL DEPENDS "${docs}/npuc-remote.1")
  npuc_add_program(npuc_remote_docs)
  install(FILES "${docs}/npuc-remote.1" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES "${docs}/npuc-remote.bash" RENAME npuc-remote
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES "${docs}/_npuc-remote" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES "${docs}/npuc-remote.fish"
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

  # The client library: five archives, its public headers, and the messages'.
  set(headers ${CMAKE_INSTALL_INCLUDEDIR}/npuc-client)
  foreach(target npuc_client npuc_grpc npuc_proto npuc_zip npuc_base)
    install(FILES $<TARGET_FILE:${target}> DESTINATION ${CMAKE_INSTALL_LIBDIR}/npuc-client)
  endforeach()
  install(FILES client/lib/client.h client/lib/local_file.h client/lib/retry.h
                client/lib/service_error.h DESTINATION ${headers}/client/lib)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/proto/gen/npuc" DESTINATION ${headers}
          FILES_MATCHING PATTERN "*.pb.h")
  install(DIRECTORY proto/npuc DESTINATION ${CMAKE_INSTALL_DATADIR}/npuc/proto
          FILES_MATCHING PATTERN "*.proto")
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/npucClient)
  configure_package_config_file(cmake/npucClientConfig.cmake.in
    "${PROJECT_BINARY_DIR}/npucClientConfig.cmake" INSTALL_DESTINATION ${package}
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/npucClientConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/npucClientConfig.cmake"
                "${PROJECT_BINARY_DIR}/npucClientConfigVersion.cmake" DESTINATION ${package})
endif()
