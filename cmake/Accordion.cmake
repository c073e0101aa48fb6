# What every target of the project shares: language, warnings, sanitizers, ccache, and one function per kind of target.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(ACCORDION_CCACHE ccache)
if(ACCORDION_CCACHE)
  # The sloppiness is what ccache's manual asks for with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ACCORDION_CCACHE})
  add_compile_options(-fpch-preprocess)
endif()

# `make` compiles the files of a target eight at a time (CMAKE_UNITY_BUILD), because torch's headers cost every compilation
# eight seconds of template instantiation, whatever it uses of them. So names in unnamed namespaces differ within a folder.
# Off elsewhere: where one file changes, and with ccache, files alone are faster.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# -Wrestrict is wrong about std::string in GCC 12.
add_compile_options(-Wall -Wextra -Wno-unused-parameter $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(ACCORDION_WERROR)
  add_compile_options(-Werror)
endif()
if(ACCORDION_SANITIZE)
  add_compile_options(-fsanitize=${ACCORDION_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ACCORDION_SANITIZE})
endif()

# accordion_library(NAME source... [TORCH] [TIMED] [LINK library...] [TESTS source...]): a library, exported as
# Accordion::NAME. Tests beside the sources (*_test.cpp) become one executable, NAME_test, that links GoogleTest and
# RapidCheck. A folder with several libraries says with TESTS which are whose; TESTS followed by nothing means none.
# TIMED tests measure time, so `ctest -j` runs nothing beside them.
function(accordion_library name)
  cmake_parse_arguments(arg "TORCH;TIMED" "" "LINK;TESTS" ${ARGN})
  set(target accordion_${name})
  add_library(${target} STATIC ${arg_UNPARSED_ARGUMENTS})
  add_library(Accordion::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${arg_LINK})
  target_compile_features(${target} PUBLIC cxx_std_20)
  if(arg_TORCH)
    accordion_use_torch(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY ACCORDION_LIBRARIES ${target})
  if(ACCORDION_TESTS)
    set(tests ${arg_TESTS})
    if(NOT tests AND NOT "TESTS" IN_LIST arg_KEYWORDS_MISSING_VALUES)
      file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
    endif()
    if(tests)
      if(arg_TORCH)
        list(APPEND tests TORCH)
      endif()
      accordion_test(${name}_test ${tests} LINK ${target})
      set_tests_properties(${name}_test PROPERTIES RUN_SERIAL ${arg_TIMED})
    endif()
  endif()
endfunction()

# accordion_test(NAME source... [TORCH] [LINK library...]): a GoogleTest executable whose cases CTest runs.
function(accordion_test name)
  cmake_parse_arguments(arg "TORCH" "" "LINK" ${ARGN})
  set(sources ${arg_UNPARSED_ARGUMENTS})
  if(ACCORDION_TEST_OBJECTS)
    accordion_compiled(${name} sources)
  endif()
  add_executable(${name} ${sources})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest_main rapidcheck)
  if(ACCORDION_TEST_OBJECTS)
    # Before the objects: of inline functions that both have, the library's are to be the ones that run.
    accordion_linked(libraries ${arg_LINK})
    list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>")
    target_link_options(${name} PRIVATE LINKER:--whole-archive ${libraries} LINKER:--no-whole-archive)
  endif()
  # One CTest entry per executable: starting libtorch for every case would take longer than the cases.
  add_test(NAME ${name} COMMAND ${name})
  # Two tests side by side have two cores: threads of OpenMP and LAPACK that wait for each other take minutes of them.
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "OMP_NUM_THREADS=1;OPENBLAS_NUM_THREADS=1")
  if(arg_TORCH)
    accordion_use_torch(${name})
  else()
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)  # Tests repeat each other's names.
    list(FILTER sources EXCLUDE REGEX "\\.o$")
    if(sources)  # The first target of a kind must compile something for its header to be there.
      accordion_precompile(${name} TESTS <gtest/gtest.h> <rapidcheck.h> <nlohmann/json.hpp>)
    endif()
    target_compile_options(${name} PRIVATE -O0)  # A third of the time to compile, and what is tested is optimised as ever.
    if(ACCORDION_SANITIZE MATCHES undefined)
      target_compile_options(${name} PRIVATE -fno-sanitize=undefined)  # What the libraries do is watched in their own objects.
    endif()
  endif()
endfunction()

# accordion_compiled(NAME VARIABLE): in the list that it names, those of test NAME that a build in ACCORDION_TEST_OBJECTS has compiled are
# replaced by their objects. Sanitizers watch libraries, so the same objects serve with libraries of either kind; but not where a
# test asks how it was compiled, or for which instruction sets the kernels were.
function(accordion_compiled name variable)
  file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  set(result)
  foreach(source ${${variable}})
    cmake_path(GET source FILENAME file)
    set(object ${ACCORDION_TEST_OBJECTS}/${folder}/CMakeFiles/${name}.dir/${file}.o)
    file(STRINGS ${source} dispatches REGEX "#include.*(hwy/|targets_testing)|__SANITIZE_")
    if(EXISTS ${object} AND NOT dispatches)
      list(APPEND result ${object})
    else()
      list(APPEND result ${source})
    endif()
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()

# accordion_linked(OUT library...): the project's own among these and all that they link.
function(accordion_linked out)
  set(result)
  foreach(library ${ARGN})
    if(library MATCHES "^accordion_" AND NOT library IN_LIST result)
      get_target_property(links ${library} LINK_LIBRARIES)
      accordion_linked(below ${links})
      list(APPEND result ${library} ${below})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES result)
  set(${out} ${result} PARENT_SCOPE)
endfunction()

# accordion_precompile(TARGET KIND header...): the first target of a kind precompiles the headers for all of its kind.
function(accordion_precompile target kind)
  get_property(first GLOBAL PROPERTY ACCORDION_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY ACCORDION_PRECOMPILED_${kind} ${target})
  endif()
endfunction()

# Torch takes half a minute to parse, so every target that sees it shares one precompiled header.
function(accordion_use_torch target)
  target_link_libraries(${target} PUBLIC ${TORCH_LIBRARIES})
  target_include_directories(${target} SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
  # GCC 12 is wrong about the stream guards of torch's futures.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  accordion_precompile(${target} TORCH <torch/torch.h>)
  # A precompiled header fits only where the flags are the same, and programs would get -fPIE for libraries' -fPIC.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

if(ACCORDION_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
