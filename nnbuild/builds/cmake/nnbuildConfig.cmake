# The CMake package of nnbuild. It comes from the folder that `nnbuild --cmakedir` prints:
#
#   find_package(nnbuild CONFIG REQUIRED)
#   nnbuild_add_model(kws MODEL kws.h5 QUANTIZE int8 CALIBRATE samples.npz)
#   target_link_libraries(app PRIVATE nnbuild::kws)
#
# See docs/cmake.md.

if(CMAKE_VERSION VERSION_LESS 3.20)
  # Make supports dependency files of custom commands since that version.
  set(nnbuild_FOUND FALSE)
  set(nnbuild_NOT_FOUND_MESSAGE "nnbuild needs CMake 3.20 or later, and this is ${CMAKE_VERSION}.")
  return()
endif()

# The interpreter: of the environment in which this file is installed, or of a checkout, or the default one.
get_filename_component(_nnbuild_home "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_nnbuild_beside "${_nnbuild_home}/.venv/bin" "${_nnbuild_home}/.venv/Scripts")
if(_nnbuild_home MATCHES "/site-packages$")
  set(_nnbuild_beside "${_nnbuild_home}/../../../bin" "${_nnbuild_home}/../../Scripts")
endif()
find_program(NNBUILD_PYTHON NAMES python3 python HINTS ${_nnbuild_beside} DOC "The Python that nnbuild runs in")
if(NOT NNBUILD_PYTHON)
  set(nnbuild_FOUND FALSE)
  set(nnbuild_NOT_FOUND_MESSAGE "there is no Python. Give one with -DNNBUILD_PYTHON=…")
  return()
endif()
# Always runs the nnbuild of this file, whatever else is installed.
set(NNBUILD_PYTHON_COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${_nnbuild_home}" "${NNBUILD_PYTHON}")
set(NNBUILD_COMMAND ${NNBUILD_PYTHON_COMMAND} -m nnbuild)
execute_process(
  COMMAND ${NNBUILD_PYTHON_COMMAND} -c
          "import nnbuild.cli.compile; print(nnbuild.__version__)"
  RESULT_VARIABLE _nnbuild_status OUTPUT_VARIABLE _nnbuild_version ERROR_VARIABLE _nnbuild_said)
if(NOT _nnbuild_status EQUAL 0)
  set(nnbuild_FOUND FALSE)
  set(nnbuild_NOT_FOUND_MESSAGE
    "${NNBUILD_PYTHON} cannot run nnbuild. Give the Python it is installed for with -DNNBUILD_PYTHON=…\n${_nnbuild_said}")
  return()
endif()
string(STRIP "${_nnbuild_version}" nnbuild_VERSION)

include("${CMAKE_CURRENT_LIST_DIR}/nnbuild.cmake")
