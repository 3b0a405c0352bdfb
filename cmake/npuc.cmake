# npuc's build functions. Targets only; sources are listed by hand, one library per folder.

# The flags every target shares; the only directory-wide settings of the build.
macro(npuc_global_setup)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  find_program(NPUC_CCACHE ccache)
  if(NPUC_CCACHE)
    # Without these words ccache stores no file that uses a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      "CCACHE_SLOPPINESS=pch_defines,time_macros" "${NPUC_CCACHE}")
  endif()
  find_program(NPUC_LLD ld.lld)
  if(NPUC_LLD)
    # For programs that are started often. What runs once at the start lies together: every file
    # that knows absl::Status has some. Written at once and laid out in steps of 2 MiB, a program
    # lies in the page cache in large pieces, which the system maps by one fault each; linked in
    # mapped memory it lies there page by page, and a small compile takes a fifth longer.
    add_link_options(-fuse-ld=lld
                     LINKER:-z,keep-text-section-prefix,-z,max-page-size=0x200000
                     LINKER:--no-mmap-output-file)
  endif()
  # Debian's own Python has Debian's modules; one that a version manager put first in PATH has not.
  if(EXISTS /usr/bin/python3)
    set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python of the build's own scripts")
  endif()
  find_package(Threads REQUIRED)
  find_package(absl CONFIG REQUIRED)

  add_library(npuc_flags INTERFACE)
  target_compile_options(npuc_flags INTERFACE
    -Wall -Wextra -Werror -Wnon-virtual-dtor -Woverloaded-virtual -Wno-unused-parameter
    -ffp-contract=off
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    # g++ 12 at -O3 sees uninitialised strings where there are none, and copies beyond the end of
    # strings that it has just made (its bug 105651); clang checks the same code.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
    # g++ takes sources that are compiled together for headers.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  target_include_directories(npuc_flags INTERFACE "${PROJECT_SOURCE_DIR}")
  if(NPUC_SANITIZE)
    add_compile_options(-fsanitize=${NPUC_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${NPUC_SANITIZE})
  endif()
  if(NPUC_PRECOMPILE)
    npuc_add_precompiled_headers()
  endif()
endmacro()

# Headers that most sources include, parsed once: a source of a library compiles in 2.2 s in place
# of 4.0 (median of five, g++ 12). Each source still includes what it uses: presets tsan and fuzz
# build without these, and each source alone.
function(npuc_add_precompiled_headers)
  set(headers
    <algorithm> <cmath> <cstdint> <functional> <map> <memory> <optional> <set> <string> <utility>
    <vector> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/string_view.h>
    <absl/types/span.h>)
  add_library(npuc_precompiled STATIC "${PROJECT_SOURCE_DIR}/cmake/precompiled.cc")
  target_link_libraries(npuc_precompiled PUBLIC npuc_flags)
  target_precompile_headers(npuc_precompiled PRIVATE ${headers})
  if(NPUC_BUILD_TESTS)
    # A program, since code of programs is compiled with other flags than code of libraries.
    add_executable(npuc_precompiled_test EXCLUDE_FROM_ALL
      "${PROJECT_SOURCE_DIR}/cmake/precompiled.cc")
    target_link_libraries(npuc_precompiled_test PRIVATE npuc_flags GTest::gmock_main)
    target_compile_options(npuc_precompiled_test PRIVATE $<$<CONFIG:Release>:-O1>)
    target_precompile_headers(npuc_precompiled_test PRIVATE ${headers}
      <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endfunction()

# npuc_precompile(TARGET kind): TARGET's sources begin with the headers of npuc_<kind>.
function(npuc_precompile target kind)
  if(NPUC_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM npuc_${kind})
  endif()
endfunction()

# npuc_compile_together(TARGET): a library's sources are compiled a few at a time, as one file that
# includes them. Headers are read and templates made once for all of them: npuc_programs take 550 s
# of processor time in place of 1,080. So names in unnamed namespaces are names of their library.
function(npuc_compile_together target)
  if(NPUC_UNITY)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]pb[.]cc$")  # all of protoc's use the same names
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON
      UNITY_BUILD_BATCH_SIZE ${NPUC_UNITY})
  endif()
endfunction()

# npuc_cc_library(NAME name SRCS a.cc DEPS other... TESTS a_test.cc TEST_DEPS ... FUZZERS a_fuzz.cc
#                 LABELS ...)
# Target npuc_<name>; tests become one binary npuc_<name>_test. DEPS are full target names. LABELS
# are those of the tests: `tsan` says that the tests link neither gRPC nor RocksDB nor use
# absl::Mutex, so that they also run under ThreadSanitizer (target npuc_tsan_tests).
function(npuc_cc_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS;PRIVATE_DEPS;TESTS;TEST_DEPS;FUZZERS;LABELS"
                        ${ARGN})
  set(target "npuc_${A_NAME}")
  if(A_SRCS)
    add_library(${target} STATIC ${A_SRCS})
    target_link_libraries(${target} PUBLIC npuc_flags ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
    npuc_precompile(${target} precompiled)
    npuc_compile_together(${target})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE npuc_flags ${A_DEPS})
  endif()
  if(A_TESTS AND NPUC_BUILD_TESTS)
    npuc_cc_test(NAME ${A_NAME}_test SRCS ${A_TESTS} DEPS ${target} ${A_TEST_DEPS}
                 LABELS ${A_LABELS})
  endif()
  if(NPUC_BUILD_FUZZERS)
    foreach(fuzzer ${A_FUZZERS})
      get_filename_component(fuzz_name ${fuzzer} NAME_WE)
      add_executable(${fuzz_name} ${fuzzer})
      target_link_libraries(${fuzz_name} PRIVATE ${target})
      target_link_options(${fuzz_name} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
  if(NPUC_BUILD_TESTS)
    # Every fuzz target's corpus is replayed in the ordinary tests by a plain main().
    foreach(fuzzer ${A_FUZZERS})
      get_filename_component(fuzz_name ${fuzzer} NAME_WE)
      add_executable(${fuzz_name}_replay ${fuzzer}
        "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc")
      set_target_properties(${fuzz_name}_replay PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test_bin")
      target_link_libraries(${fuzz_name}_replay PRIVATE ${target})
      add_test(NAME ${fuzz_name}_replay
        COMMAND ${fuzz_name}_replay "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${fuzz_name}")
    endforeach()
  endif()
endfunction()

# npuc_cc_test(NAME name SRCS ... DEPS ... [LABELS ...]): a GoogleTest binary run by ctest.
function(npuc_cc_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(npuc_${A_NAME} ${A_SRCS})
  target_link_libraries(npuc_${A_NAME} PRIVATE npuc_flags ${A_DEPS} GTest::gmock_main)
  # A test's own code is compiled oftener than it runs; with -O3 its files took a third longer.
  # -O0 under the sanitizers is no gain: memplan_test and torchscript_test took minutes.
  target_compile_options(npuc_${A_NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  npuc_precompile(npuc_${A_NAME} precompiled_test)
  set_target_properties(npuc_${A_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test_bin")
  add_test(NAME ${A_NAME} COMMAND npuc_${A_NAME})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  set_tests_properties(${A_NAME} PROPERTIES TIMEOUT ${A_TIMEOUT}
    ENVIRONMENT "NPUC_SOURCE_DIR=${PROJECT_SOURCE_DIR};NPUC_BIN_DIR=${PROJECT_BINARY_DIR}/bin")
  if(A_LABELS)
    set_tests_properties(${A_NAME} PROPERTIES LABELS "${A_LABELS}")
  endif()
  if("tsan" IN_LIST A_LABELS)
    if(NOT TARGET npuc_tsan_tests)
      add_custom_target(npuc_tsan_tests)
    endif()
    add_dependencies(npuc_tsan_tests npuc_${A_NAME})
  endif()
endfunction()

# npuc_add_program(target): target is built with npuc_programs.
function(npuc_add_program target)
  if(NOT TARGET npuc_programs)
    add_custom_target(npuc_programs)
  endif()
  add_dependencies(npuc_programs ${target})
endfunction()

# npuc_cc_binary(NAME npuc SRCS ... DEPS ... [STATIC]): a program, also one of npuc_programs, which
# are all that the end-to-end tests run.
# STATIC: without shared libraries, for programs that start often and link no gRPC (the link step is
# cmake/link_static.py, which says why). NPUC_STATIC=OFF and sanitizers, which need the shared libc,
# turn it off.
function(npuc_cc_binary)
  cmake_parse_arguments(A "STATIC" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  target_link_libraries(${A_NAME} PRIVATE npuc_flags ${A_DEPS})
  npuc_add_program(${A_NAME})
  if(A_STATIC AND NPUC_STATIC AND NOT NPUC_SANITIZE)
    set(script "${PROJECT_SOURCE_DIR}/cmake/link_static.py")
    set_target_properties(${A_NAME} PROPERTIES
      RULE_LAUNCH_LINK "${Python3_EXECUTABLE} ${script}" LINK_DEPENDS "${script}")
  endif()
endfunction()

# npuc_private_messages(name folder file.proto): npuc_<name>, generated code of messages that no
# client sees. One .cc file includes it, as "<file>.pb.h", and links the target PRIVATE. Everything
# links the whole protobuf library, of which a static program takes the part that it needs: with the
# small library beside the whole one, a program would destroy the same globals twice.
function(npuc_private_messages name folder file)
  find_package(Protobuf REQUIRED)
  set(root "${CMAKE_CURRENT_SOURCE_DIR}/${folder}")
  set(gen_dir "${CMAKE_CURRENT_BINARY_DIR}/gen_${name}")
  string(REGEX REPLACE "[.]proto$" "" stem ${file})
  file(MAKE_DIRECTORY "${gen_dir}")
  add_custom_command(
    OUTPUT "${gen_dir}/${stem}.pb.cc" "${gen_dir}/${stem}.pb.h"
    COMMAND protobuf::protoc "-I${root}" "--cpp_out=${gen_dir}" ${file}
    DEPENDS "${root}/${file}" VERBATIM)
  add_library(npuc_${name} STATIC "${gen_dir}/${stem}.pb.cc")
  target_include_directories(npuc_${name} SYSTEM PUBLIC "${gen_dir}")
  target_link_libraries(npuc_${name} PUBLIC protobuf::libprotobuf)
  target_compile_options(npuc_${name} PRIVATE -w)
endfunction()
