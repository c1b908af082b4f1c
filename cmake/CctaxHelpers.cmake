# SPDX-License-Identifier: Apache-2.0
# cct_room(NAME SOURCES ... [USES room...] [LINKS target...]): one room as a static library cct_NAME.
# cct_test(NAME SOURCES ... USES ... [LABELS ...] [ARGS ...]): one cmocka program, one ctest test; exit 77 means skipped.
# cct_script_test(NAME COMMAND ... [LABELS ...] [TIMEOUT s]): a test that is a script.

add_library(cct_flags INTERFACE)
target_compile_definitions(cct_flags INTERFACE _GNU_SOURCE CCT_VERSION="${PROJECT_VERSION}")
target_include_directories(cct_flags INTERFACE ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR})
# snprintf's bound is meant where it cuts a message; and outputs that are set only on success look unset to gcc at -O2,
# which clang-tidy's analyzer follows.
target_compile_options(cct_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion
  -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wformat=2 -Wno-format-nonliteral
  -Wno-format-truncation -Wno-maybe-uninitialized>)
if(CCT_WERROR)
  target_compile_options(cct_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(CCT_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-fsanitize=${CCT_SANITIZE}> $<$<COMPILE_LANGUAGE:C>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${CCT_SANITIZE})
endif()
if(CCT_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:--coverage>)
  add_link_options(--coverage)
endif()

function(cct_room name)
  cmake_parse_arguments(R "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_library(cct_${name} STATIC ${R_SOURCES})
  list(TRANSFORM R_USES PREPEND cct_)
  target_link_libraries(cct_${name} PUBLIC cct_flags ${R_USES} PRIVATE ${R_LINKS})
endfunction()

function(cct_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;USES;LINKS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  list(TRANSFORM T_USES PREPEND cct_)
  target_link_libraries(${name} PRIVATE cct_flags ${T_USES} ${T_LINKS} cmocka)
  # Test doubles and table rows are terse on purpose; the product's strictness on conversions is not asked of them.
  set_source_files_properties(${T_SOURCES} PROPERTIES COMPILE_OPTIONS -Wno-conversion)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
  cct_test_properties(${name} "${T_LABELS}" "${T_TIMEOUT}")
endfunction()

function(cct_script_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${T_COMMAND})
  cct_test_properties(${name} "${T_LABELS}" "${T_TIMEOUT}")
endfunction()

# Open MPI: root is what containers are, more ranks than cores is what CI has, and without `oversubscribe` waiting ranks
# do not yield (1000 times slower); single_copy none avoids a warning in user namespaces; ob1 is what the search for a fabric
# ends with here, after 0.2 s a start.
# Leaks: the suppressions name Open MPI's, by stacks that only the slow unwinder finds. intercept_tls_get_addr: gcc 12's
# libasan takes the thread-local block of a library that was opened late for one of glibc 2.19 where its own allocator put
# it 16 bytes into a page, reads its own header as the block's place, and LeakSanitizer then scans an address that is none
# ("Tracer caught signal 11"). Ranks, for which Open MPI opens many, died of it in 13 of 15 runs of one block, and in none of
# 15 without; what a library's thread-local data holds is still found, by way of the thread's own table.
set(CCT_TEST_ENVIRONMENT
  CCT_SOURCE=${PROJECT_SOURCE_DIR} CCT_BINARY=${PROJECT_BINARY_DIR}
  "CCTAX_DATA=${PROJECT_SOURCE_DIR}/data"
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_pml=ob1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
  "ASAN_OPTIONS=fast_unwind_on_malloc=0:intercept_tls_get_addr=0" "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0")

function(cct_test_properties name labels timeout)
  if(NOT timeout)
    set(timeout 60)
  endif()
  if(CCT_SANITIZE)
    math(EXPR timeout "4 * ${timeout}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} SKIP_RETURN_CODE 77 LABELS "${labels}"
    ENVIRONMENT "${CCT_TEST_ENVIRONMENT}")
endfunction()
