# `cmake --install build --prefix DIR` puts into place: the programs with dashboard, manual pages
# and shell completion, and the C++ client library with a package for find_package(npucClient). The
# components are the Debian packages of package.cmake.
include(GNUInstallDirs)

if(NOT NPUC_CORE_ONLY)
  install(TARGETS npucd npuc-worker DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
  install(TARGETS npuc npuc-operator npuc-remote DESTINATION ${CMAKE_INSTALL_BINDIR}
          COMPONENT tools)
  foreach(tool IN LISTS NPUC_COMPASS_TOOLS)  # links to npuc
    install(FILES "${PROJECT_BINARY_DIR}/bin/${tool}" DESTINATION ${CMAKE_INSTALL_BINDIR}
            COMPONENT tools)
  endforeach()
  # From ../share, where npucd looks for it; not there where the build had no npm.
  install(DIRECTORY "${PROJECT_BINARY_DIR}/bin/dashboard" DESTINATION share/npuc
          COMPONENT server OPTIONAL)
  install(FILES deploy/OPERATIONS.md deploy/METRICS.md DESTINATION ${CMAKE_INSTALL_DOCDIR}d
          COMPONENT server)
  install(DIRECTORY deploy/alerts DESTINATION ${CMAKE_INSTALL_DOCDIR}d COMPONENT server)
  # The C interface of operators that npuc-operator loads.
  install(FILES client/operator/npuc_operator.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/npuc
          COMPONENT tools)
  install(DIRECTORY deploy/samples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)

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
  # Of npuc and npucd from their --help.
  foreach(page "npuc 1 tools" "npucd 8 server")
    separate_arguments(page)
    list(GET page 0 program)
    list(GET page 1 section)
    add_custom_command(
      OUTPUT "${docs}/${program}.${section}" "${docs}/${program}.bash" "${docs}/_${program}"
             "${docs}/${program}.fish"
      COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/cmake/program_docs.py"
              $<TARGET_FILE:${program}> ${section} "${docs}"
      DEPENDS ${program} cmake/program_docs.py VERBATIM)
    add_custom_target(${program}_docs ALL DEPENDS "${docs}/${program}.${section}")
    npuc_add_program(${program}_docs)
  endforeach()
  foreach(page "npuc-remote 1 tools" "npuc 1 tools" "npucd 8 server")
    separate_arguments(page)
    list(GET page 0 program)
    list(GET page 1 section)
    list(GET page 2 component)
    install(FILES "${docs}/${program}.${section}"
            DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
    install(FILES "${docs}/${program}.bash" RENAME ${program} COMPONENT ${component}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES "${docs}/_${program}" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
            COMPONENT ${component})
    install(FILES "${docs}/${program}.fish" COMPONENT ${component}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endforeach()

  # The client library: five archives, its public headers, and the messages'.
  set(headers ${CMAKE_INSTALL_INCLUDEDIR}/npuc-client)
  foreach(target npuc_client npuc_grpc npuc_proto npuc_zip npuc_base)
    install(FILES $<TARGET_FILE:${target}> DESTINATION ${CMAKE_INSTALL_LIBDIR}/npuc-client
            COMPONENT dev)
  endforeach()
  install(FILES client/lib/client.h client/lib/local_file.h client/lib/retry.h
                client/lib/service_error.h DESTINATION ${headers}/client/lib COMPONENT dev)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/proto/gen/npuc" DESTINATION ${headers}
          COMPONENT dev FILES_MATCHING PATTERN "*.pb.h")
  install(DIRECTORY proto/npuc DESTINATION ${CMAKE_INSTALL_DATADIR}/npuc/proto
          COMPONENT dev FILES_MATCHING PATTERN "*.proto")
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/npucClient)
  configure_package_config_file(cmake/npucClientConfig.cmake.in
    "${PROJECT_BINARY_DIR}/npucClientConfig.cmake" INSTALL_DESTINATION ${package}
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/npucClientConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/npucClientConfig.cmake"
                "${PROJECT_BINARY_DIR}/npucClientConfigVersion.cmake" DESTINATION ${package}
          COMPONENT dev)
endif()
