# cmake --install: headers, libraries, the program, and a package that find_package(Accordion) finds.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY ACCORDION_LIBRARIES)
install(TARGETS ${libraries} EXPORT AccordionTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT AccordionTargets NAMESPACE Accordion:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Accordion)
install(DIRECTORY accordion DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "stand_in" EXCLUDE PATTERN "*_contract.h" EXCLUDE)
if(TARGET accordion)
  install(TARGETS accordion RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(ACCORDION_WITH_MPI OFF)
if(TARGET accordion_comm_mpi)
  set(ACCORDION_WITH_MPI ON)
endif()
configure_package_config_file(cmake/AccordionConfig.cmake.in ${PROJECT_BINARY_DIR}/AccordionConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Accordion)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/AccordionConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AccordionConfig.cmake ${PROJECT_BINARY_DIR}/AccordionConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Accordion)
