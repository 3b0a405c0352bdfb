# Builds the dashboard:
# cmake -DNPM=... -DSOURCE=... -DREPORT=... -DBUILD=... -DOUT=... -DSTAMP=... -P THIS
#
# Works on a copy in the build tree, so that npm writes nothing beside the sources. Where npm cannot
# get its packages the build of npucd does not fail: npucd then serves a page that says what to do,
# and the next build tries again.
execute_process(COMMAND "${CMAKE_COMMAND}" -E make_directory "${BUILD}")
file(REMOVE_RECURSE "${BUILD}/src" "${BUILD}/public" "${BUILD}/tests" "${BUILD}/report")
foreach(entry index.html package.json package-lock.json tsconfig.json vite.config.ts src public
        tests)
  file(COPY "${SOURCE}/${entry}" DESTINATION "${BUILD}")
endforeach()
# The views of a report, which report.html has, too.
file(COPY "${REPORT}/" DESTINATION "${BUILD}/report")
# The types of the service are made of it.
file(COPY "${SOURCE}/../../proto/openapi.json" DESTINATION "${BUILD}")

function(run_npm)
  execute_process(COMMAND "${NPM}" ${ARGN} WORKING_DIRECTORY "${BUILD}"
    RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(failed "${failed}" PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()

# A second build with the same lock file needs no network. Not "npm ci": a registry that has not
# every platform's optional packages leaves them out of the lock file, and that refuses it then.
file(SHA256 "${SOURCE}/package-lock.json" lock)
if(NOT EXISTS "${BUILD}/installed-${lock}")
  run_npm(install --no-audit --no-fund --ignore-scripts --prefer-offline --fetch-retries=1
          --fetch-timeout=30000)
  if(NOT failed EQUAL 0)
    message(WARNING "the dashboard is not built, npucd works without it: npm failed:\n${text}")
    return()
  endif()
  file(WRITE "${BUILD}/installed-${lock}" "")
endif()
run_npm(run build)
if(NOT failed EQUAL 0)
  # Its packages are there, so this is a fault of the sources.
  message(FATAL_ERROR "the dashboard does not build:\n${text}")
endif()
file(REMOVE_RECURSE "${OUT}")
file(COPY "${BUILD}/dist/" DESTINATION "${OUT}")
file(COPY "${SOURCE}/../../proto/openapi.json" DESTINATION "${OUT}")
file(WRITE "${STAMP}" "")
