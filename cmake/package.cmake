# Debian packages, by `cpack --config build/CPackConfig.cmake` after the programs are built: npucd
# (the daemon with its unit, user and /etc/npuc/npucd.yaml), npuc (npuc and npuc-remote),
# libnpuc-client-dev and python3-npuc. tests/e2e/packages.py installs, upgrades and purges them.
set(package "${PROJECT_SOURCE_DIR}/deploy/package")

# The unit of the sources, with the paths of the package.
file(READ "${PROJECT_SOURCE_DIR}/deploy/systemd/npucd.service" unit)
string(REPLACE "/usr/local/bin/" "/usr/bin/" unit "${unit}")
file(WRITE "${PROJECT_BINARY_DIR}/package/npucd.service" "${unit}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             "${PROJECT_SOURCE_DIR}/deploy/systemd/npucd.service")

# They are no part of `cmake --install`, which may go to any prefix.
install(FILES "${PROJECT_BINARY_DIR}/package/npucd.service" DESTINATION /usr/lib/systemd/system
        COMPONENT server EXCLUDE_FROM_ALL)
install(FILES "${package}/npucd.yaml" DESTINATION /etc/npuc COMPONENT server EXCLUDE_FROM_ALL)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/client/python/npuc"
                  "${PROJECT_SOURCE_DIR}/client/python/AIPUBuilder"
        DESTINATION /usr/lib/python3/dist-packages COMPONENT python EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)

# cpack packs what is built; without this it would build the tests as well.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL server tools dev python)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME npuc)
set(CPACK_PACKAGE_CONTACT "npuc")
set(CPACK_PACKAGE_VENDOR "npuc")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME npucd)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME npuc)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libnpuc-client-dev)
set(CPACK_COMPONENT_SERVER_DESCRIPTION "Daemon that compiles neural networks for NPUs as a service")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Compiler of neural networks for NPUs, with its client")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-npuc)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3, python3-numpy, npuc")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Python client of the npuc compile service")
set(CPACK_COMPONENT_DEV_DESCRIPTION "C++ client library of the npuc compile service")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "passwd")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "npuc")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libgrpc++-dev, libprotobuf-dev, libabsl-dev")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
    "${package}/conffiles;${package}/postinst;${package}/prerm;${package}/postrm")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
