# Writes OUT (a .cc file) with an id of everything that can change the compiler's output: the
# sources of compiler_core, the C++ compiler and its flags. Touches OUT only where the id changed.
file(GLOB_RECURSE sources LIST_DIRECTORIES false RELATIVE "${SOURCE_DIR}"
     "${SOURCE_DIR}/*.cc" "${SOURCE_DIR}/*.h" "${SOURCE_DIR}/*.inc" "${SOURCE_DIR}/*.yaml"
     "${SOURCE_DIR}/*.proto" "${SOURCE_DIR}/*.py")
list(SORT sources)
set(digests "${COMPILER};${FLAGS}")
foreach(source ${sources})
  if(source MATCHES "_(test|fuzz)\\.cc$")
    continue()
  endif()
  file(SHA256 "${SOURCE_DIR}/${source}" digest)
  string(APPEND digests ";${source}=${digest}")
endforeach()
string(SHA256 id "${digests}")
string(SUBSTRING "${id}" 0 32 id)
set(content "#include \"compiler_core/pipeline/compile.h\"

namespace npuc {

absl::string_view CompilerVersion() { return \"npuc ${VERSION}\"; }
absl::string_view CompilerBuildId() { return \"${id}\"; }

}  // namespace npuc
")
if(EXISTS "${OUT}")
  file(READ "${OUT}" old)
endif()
if(NOT "${old}" STREQUAL "${content}")
  file(WRITE "${OUT}" "${content}")
endif()
