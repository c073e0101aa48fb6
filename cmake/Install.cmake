# cmake --install: headers, libraries, the program, and a package that find_package(Accordion) finds.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY ACCORDION_LIBRARIES)
# MPI is asked of those who ask for it: find_package(Accordion COMPONENTS mpi).
if(accordion_comm_mpi IN_LIST libraries)
  list(REMOVE_ITEM libraries accordion_comm_mpi)
  install(TARGETS accordion_comm_mpi EXPORT AccordionMpiTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT AccordionMpiTargets NAMESPACE Accordion:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Accordion)
endif()
install(TARGETS ${libraries} EXPORT AccordionTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT AccordionTargets NAMESPACE Accordion:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Accordion)
install(DIRECTORY accordion DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "stand_in" EXCLUDE PATTERN "page" EXCLUDE PATTERN "*_contract.h" EXCLUDE PATTERN "*_testing.h" EXCLUDE)
if(TARGET accordion)
  install(TARGETS accordion RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS accordion-torch RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}/../libexec/accordion)
endif()

configure_package_config_file(cmake/AccordionConfig.cmake.in ${PROJECT_BINARY_DIR}/AccordionConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Accordion)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/AccordionConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AccordionConfig.cmake ${PROJECT_BINARY_DIR}/AccordionConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Accordion)
