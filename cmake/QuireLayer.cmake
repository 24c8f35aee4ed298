# quire_layer(NAME [DEPS target...]): a static library quire_NAME of the folder's *.cc files, and a test program
# quire_NAME_test of its *_test.cc files, registered with CTest.
# quire_fuzz(NAME SOURCE [DEPS target...]): a libFuzzer program, built only with QUIRE_FUZZ.

add_library(quire_options INTERFACE)
target_include_directories(quire_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(quire_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Werror -ffp-contract=off -fno-math-errno)
# System headers seen through -Werror=... by g++ 12's own library give false alarms under these two.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(quire_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
target_compile_definitions(quire_options INTERFACE QUIRE_VERSION="${PROJECT_VERSION}")
if(QUIRE_SANITIZE)
  target_compile_options(quire_options INTERFACE
    -fsanitize=${QUIRE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(quire_options INTERFACE -fsanitize=${QUIRE_SANITIZE})
endif()
if(QUIRE_FUZZ)
  target_compile_options(quire_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(quire_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cc)
  # A subfolder with its own CMakeLists.txt is a layer of its own.
  file(GLOB own CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(file ${own})
    get_filename_component(folder ${file} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_(test|fuzz)|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(quire_${name} STATIC ${sources})
    target_link_libraries(quire_${name} PUBLIC quire_options Threads::Threads ${ARG_DEPS})
  else()  # headers only
    add_library(quire_${name} INTERFACE)
    target_link_libraries(quire_${name} INTERFACE quire_options Threads::Threads ${ARG_DEPS})
  endif()
  if(QUIRE_TESTS AND tests)
    quire_test(${name}_test SOURCES ${tests} DEPS quire_${name})
  endif()
endfunction()

function(quire_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(quire_${name} ${ARG_SOURCES})
  target_link_libraries(quire_${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(quire_${name} PRIVATE QUIRE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND quire_${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "${ARG_LABELS}")
endfunction()

function(quire_fuzz name source)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  if(QUIRE_FUZZ)
    add_executable(quire_${name}_fuzz ${source})
    target_link_libraries(quire_${name}_fuzz PRIVATE ${ARG_DEPS})
    target_link_options(quire_${name}_fuzz PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
