# The functions. All files go to the build tree; nothing is written beside the sources.

set(_nnbuild_options
  BOARD MEMORY ISA QUANTIZE CALIBRATE CALIBRATION IMAGE_RANGE IO ACCURACY_DROP OPTIMIZE PRICE THREADS WEIGHTS
  IO_LAYOUT LABELS PRUNE SHARE WEIGHTS_BITS FLASH STREAM FEATURES DEVICE)
set(_nnbuild_lists KEEP PLACE SHAPE FIX)
set(_nnbuild_contents "${CMAKE_CURRENT_LIST_DIR}/contents.cmake")
set(NNBUILD_PORT "" CACHE STRING "The serial port of the device that checks and flashing go to")

# nnbuild_add_model(<target> MODEL <file> [NAME <prefix>] [ISA <isa>] [BOARD <board>] [QUANTIZE float|int8|int16]
#                   [CALIBRATE <file or folder>] [CALIBRATION minmax|percentile|mse] [IMAGE_RANGE <low,high>]
#                   [KEEP <layer=format>...] [IO integer|float] [ACCURACY_DROP <points>] [NO_BIAS_CORRECTION]
#                   [OPTIMIZE speed|size|ram] [PRICE cycles|instructions] [MEMORY <name>] [THREADS <count>]
#                   [WEIGHTS auto|array|binary] [LABELS <file>] [PRUNE <share>|by-layer|auto] [SHARE <count>]
#                   [WEIGHTS_BITS 2…8|auto] [FLASH <bytes>] [STREAM auto|<axis>[,hop=<rows>]]
#                   [SHAPE <input=sizes>...] [FIX <input=numbers>...] [IO_LAYOUT model|nhwc]
#                   [FEATURES <file>] [DEVICE <name or folder>] [PLACE <layer=cpu|device>...])
#
# Adds the static library <target>, alias nnbuild::<target>. The build generates the C.
function(nnbuild_add_model target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "NO_BIAS_CORRECTION" "MODEL;NAME;${_nnbuild_options}" "${_nnbuild_lists}")
  _nnbuild_checked(nnbuild_add_model "${target}")
  _nnbuild_prefix(prefix "${target}" "${ARG_NAME}")
  get_filename_component(model "${ARG_MODEL}" ABSOLUTE)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/nnbuild/${target}")
  _nnbuild_arguments(arguments)
  # Newer than a report of other options.
  file(CONFIGURE OUTPUT "${folder}/options.txt" CONTENT "${prefix};${arguments};${ARG_WEIGHTS}\n" @ONLY)
  _nnbuild_expect("${folder}" "${model}" "${prefix}" arguments)

  set(stem "${folder}/${prefix}")
  set(sources "${stem}.h" "${stem}_private.h" "${stem}.c" "${stem}_kernels.c")
  if(NNBUILD_FORM STREQUAL "array")
    set(constants "${stem}_weights.c")
  else()
    set(constants "${stem}_weights.S" "${stem}_weights.bin")
  endif()
  list(TRANSFORM NNBUILD_HEARING PREPEND "${folder}/")
  list(APPEND sources ${NNBUILD_HEARING})
  set(headers "${stem}.h" ${NNBUILD_HEARING})
  list(FILTER headers INCLUDE REGEX "[.]h$")
  list(TRANSFORM NNBUILD_BESIDE PREPEND "${folder}/")
  list(APPEND sources ${NNBUILD_BESIDE})
  set(stamp "${folder}/.stamp")
  _nnbuild_record(contents)
  set(report "${folder}/${prefix}.json")
  list(APPEND arguments --weights ${NNBUILD_FORM} --name ${prefix})
  add_custom_command(OUTPUT "${stamp}" BYPRODUCTS ${sources} ${constants} "${report}"
    COMMAND ${NNBUILD_COMMAND} compile "${model}" ${arguments} -o "${folder}"
            --json "${report}" --stamp "${stamp}" --depfile "${stamp}.d"
    DEPENDS "${contents}" "${model}" ${NNBUILD_SAMPLES}
    DEPFILE "${stamp}.d" COMMENT "nnbuild compile ${ARG_MODEL}" VERBATIM)
  add_custom_target(${target}_c DEPENDS "${stamp}")

  add_library(${target} STATIC ${sources} ${constants})
  add_library(nnbuild::${target} ALIAS ${target})
  add_dependencies(${target} ${target}_c)
  target_compile_options(${target} PRIVATE ${NNBUILD_BESIDE_FLAGS})
  target_link_libraries(${target} INTERFACE ${NNBUILD_BESIDE_LINK})
  if(NNBUILD_FORM STREQUAL "binary")
    # The C compiler is told what it is, so that no project has to name another language.
    set_source_files_properties("${stem}_weights.S" PROPERTIES
      LANGUAGE C COMPILE_OPTIONS "-x;assembler-with-cpp" OBJECT_DEPENDS "${stem}_weights.bin")
  endif()
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>" "$<INSTALL_INTERFACE:include>")
  set(gnu "$<C_COMPILER_ID:GNU,Clang,AppleClang,ARMClang>")
  target_compile_options(${target} PRIVATE
    "$<${gnu}:-ffp-contract=off;-ffunction-sections;-fdata-sections>" # contraction would change the last bits
    "$<$<AND:${gnu},$<OR:$<CONFIG:>,$<CONFIG:Debug>>>:-O2>") # without optimization kernels are of no use to anyone
  set_target_properties(${target} PROPERTIES
    C_STANDARD 99 PUBLIC_HEADER "${headers}"
    # Two models of one prefix cannot be in one program; this makes CMake say so.
    INTERFACE_NNBUILD_MODEL_${prefix} ${target} COMPATIBLE_INTERFACE_STRING NNBUILD_MODEL_${prefix}
    NNBUILD_PREFIX ${prefix} NNBUILD_FOLDER "${folder}" NNBUILD_REPORT "${report}"
    NNBUILD_ARENA_BYTES "${NNBUILD_ARENA}" NNBUILD_STATE_BYTES "${NNBUILD_STATE}"
    NNBUILD_FLASH_BYTES "${NNBUILD_FLASH}")
endfunction()

# nnbuild_audit(<target> POLICY kernel|mcu|hosted)
#
# Checks a library or program for forbidden contents after every build; the target <target>_audit does this separately.
function(nnbuild_audit target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "POLICY" "")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_POLICY)
    message(FATAL_ERROR "nnbuild_audit(${target}): write nnbuild_audit(<target> POLICY kernel|mcu|hosted).")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "nnbuild_audit(${target}): there is no such target. Call it after the target is defined.")
  endif()
  get_target_property(aliased ${target} ALIASED_TARGET)
  if(aliased)
    set(target ${aliased})
  endif()
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/nnbuild/${target}.audited")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND ${NNBUILD_COMMAND} audit "$<TARGET_FILE:${target}>" --policy "${ARG_POLICY}"
            --json "${CMAKE_CURRENT_BINARY_DIR}/nnbuild/${target}.audit.json"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${target} "$<TARGET_FILE:${target}>" COMMENT "nnbuild audit ${target}" VERBATIM)
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/nnbuild")
  add_custom_target(${target}_audit ALL DEPENDS "${stamp}")
endfunction()

# nnbuild_add_firmware(<target> MODEL <file> BOARD <board> [INPUTS <samples>] [BAUD <rate>]
#                      [BUILD_OPTIONS <option>...] [the options of nnbuild_add_model])
#
# NAME is by default that of the model's file, as on the command line.
# Builds the program that serves the model on a board, with the board's own compiler, linked and audited; adds the
# targets <target>_check, <target>_flash and <target>_size. Give the device's port with -DNNBUILD_PORT=….
function(nnbuild_add_firmware target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "NO_BIAS_CORRECTION" "MODEL;NAME;INPUTS;BAUD;${_nnbuild_options}"
    "${_nnbuild_lists};BUILD_OPTIONS")
  _nnbuild_checked(nnbuild_add_firmware "${target}")
  if(NOT ARG_BOARD)
    message(FATAL_ERROR "nnbuild_add_firmware(${target}): give it a BOARD. `nnbuild boards` lists all.")
  endif()
  _nnbuild_for_a_board()
  list(APPEND arguments ${ARG_BUILD_OPTIONS}) # all commands for boards take them
  _nnbuild_program(program nnbuild_add_firmware)

  set(stamp "${folder}/.stamp")
  _nnbuild_record(contents)
  add_custom_command(OUTPUT "${stamp}" BYPRODUCTS "${program}"
    COMMAND ${NNBUILD_COMMAND} build "${model}" ${arguments} -o "${folder}" --stamp "${stamp}" --depfile "${stamp}.d"
    DEPENDS "${contents}" "${model}" ${NNBUILD_SAMPLES}
    DEPFILE "${stamp}.d" COMMENT "nnbuild build ${ARG_MODEL} for ${ARG_BOARD}" VERBATIM)
  add_custom_target(${target} ALL DEPENDS "${stamp}")
  set_target_properties(${target} PROPERTIES NNBUILD_PROGRAM "${program}" NNBUILD_FOLDER "${folder}")

  set(inputs)
  if(ARG_INPUTS)
    get_filename_component(samples "${ARG_INPUTS}" ABSOLUTE)
    set(inputs --inputs "${samples}")
  endif()
  set(given "${model}" ${arguments} --program "${program}" ${port})
  set(verdict --json "${folder}/check.json")
  if(NOT ARG_FEATURES) # the check of sounds has no gates to list
    list(APPEND verdict --junit "${folder}/check.xml")
  endif()
  _nnbuild_run(${target} check check ${given} ${inputs} ${verdict})
  _nnbuild_run(${target} flash flash ${given})
  _nnbuild_run(${target} size profile ${given})
endfunction()

# nnbuild_add_application(<target> SOURCES <file>... MODEL <file> BOARD <board> [BAUD <rate>]
#                         [the options of nnbuild_add_model])
#
# Builds your own program for a bare chip, with the board's own compiler and start-up code; adds the targets
# <target>_monitor, which shows what it prints, and <target>_flash.
function(nnbuild_add_application target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "NO_BIAS_CORRECTION" "MODEL;NAME;BAUD;${_nnbuild_options}" "${_nnbuild_lists};SOURCES")
  _nnbuild_checked(nnbuild_add_application "${target}")
  if(NOT ARG_BOARD OR NOT ARG_SOURCES)
    message(FATAL_ERROR "nnbuild_add_application(${target}): give it SOURCES and a BOARD. `nnbuild boards` lists all boards.")
  endif()
  _nnbuild_for_a_board()
  set(sources)
  foreach(source ${ARG_SOURCES})
    get_filename_component(source "${source}" ABSOLUTE)
    list(APPEND sources "${source}")
  endforeach()
  _nnbuild_program(program nnbuild_add_application --application ${sources})
  set(stamp "${folder}/.stamp")
  _nnbuild_record(contents)
  add_custom_command(OUTPUT "${stamp}" BYPRODUCTS "${program}"
    COMMAND ${NNBUILD_COMMAND} build "${model}" ${arguments} -o "${folder}" --stamp "${stamp}"
            --depfile "${stamp}.d" --application ${sources}
    DEPENDS "${contents}" "${model}" ${sources} ${NNBUILD_SAMPLES}
    DEPFILE "${stamp}.d" COMMENT "nnbuild build ${target} for ${ARG_BOARD}" VERBATIM)
  add_custom_target(${target} ALL DEPENDS "${stamp}")
  set_target_properties(${target} PROPERTIES NNBUILD_PROGRAM "${program}" NNBUILD_FOLDER "${folder}")
  _nnbuild_run(${target} monitor monitor "${program}" --board "${ARG_BOARD}" ${baud} ${port})
  _nnbuild_run(${target} flash flash "${model}" ${arguments} --program "${program}" --application ${port})
endfunction()

# Common part of the functions for boards: model, folder, arguments, baud and port. Without a NAME, the command names the
# C after the model's file.
macro(_nnbuild_for_a_board)
  get_filename_component(model "${ARG_MODEL}" ABSOLUTE)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/nnbuild/${target}")
  _nnbuild_arguments(arguments)
  if(ARG_NAME)
    list(APPEND arguments --name "${ARG_NAME}")
  endif()
  if(ARG_WEIGHTS)
    list(APPEND arguments --weights "${ARG_WEIGHTS}")
  endif()
  set(baud)
  if(ARG_BAUD)
    set(baud --baud "${ARG_BAUD}")
  endif()
  list(APPEND arguments ${baud})
  set(port)
  if(NNBUILD_PORT)
    set(port --port "${NNBUILD_PORT}")
  endif()
endmacro()

# The file of the program that a build makes; refuses what the command refuses before it reads the model.
macro(_nnbuild_program result function)
  execute_process(COMMAND ${NNBUILD_COMMAND} build "${model}" ${arguments} -o "${folder}" --dry-run --json ${ARGN}
    RESULT_VARIABLE _status OUTPUT_VARIABLE _facts ERROR_VARIABLE _said)
  if(NOT _status EQUAL 0)
    message(FATAL_ERROR "${function}(${target}): ${_said}")
  endif()
  string(JSON ${result} GET "${_facts}" program)
endmacro()

# A record of what the model and the samples contain, compared at each build; see contents.cmake.
macro(_nnbuild_record result)
  set(${result} "${folder}/contents.txt")
  add_custom_target(${target}_contents
    COMMAND "${CMAKE_COMMAND}" -P "${_nnbuild_contents}" "${${result}}" "${model}" ${NNBUILD_SAMPLES}
    BYPRODUCTS "${${result}}" DEPENDS "${model}" ${NNBUILD_SAMPLES}
    COMMENT "Comparing ${ARG_MODEL} with the last build" VERBATIM)
endmacro()

# A target <target>_<word> that runs a command on the built program.
function(_nnbuild_run target word)
  add_custom_target(${target}_${word} COMMAND ${NNBUILD_COMMAND} ${ARGN} USES_TERMINAL VERBATIM)
  add_dependencies(${target}_${word} ${target})
endfunction()

# Refuses misspelt or missing arguments.
function(_nnbuild_checked function target)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${target}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}. `nnbuild docs cmake` lists its options.")
  endif()
  if(ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${function}(${target}): a value is missing after ${ARG_KEYWORDS_MISSING_VALUES}.")
  endif()
  if(NOT ARG_MODEL)
    message(FATAL_ERROR "${function}(${target}): give it a MODEL, a .h5, .keras, .tflite or .onnx file.")
  endif()
  if(TARGET ${target})
    message(FATAL_ERROR "${function}(${target}): a target of this name already exists. Choose another name.")
  endif()
endfunction()

# The C prefix: of the given name, or the target's.
function(_nnbuild_prefix result target name)
  if(NOT name)
    set(name "${target}")
  endif()
  execute_process(COMMAND ${NNBUILD_PYTHON_COMMAND} -m nnbuild.base.names "${name}"
    RESULT_VARIABLE status OUTPUT_VARIABLE prefix ERROR_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "nnbuild_add_model(${target}): ${said}")
  endif()
  set(${result} "${prefix}" PARENT_SCOPE)
endfunction()

# The options as command-line arguments; NNBUILD_SAMPLES gets the files that they name.
macro(_nnbuild_arguments result)
  set(${result})
  # The project's own board is found wherever the command runs.
  foreach(own_board "${ARG_BOARD}" "boards/${ARG_BOARD}.toml" "boards/${ARG_BOARD}/board.toml")
    get_filename_component(own_board "${own_board}" ABSOLUTE)
    if(own_board MATCHES "[.]toml$" AND EXISTS "${own_board}")
      set(ARG_BOARD "${own_board}")
      break()
    endif()
  endforeach()
  set(NNBUILD_SAMPLES)
  if(CMAKE_CROSSCOMPILING AND NOT ARG_ISA AND NOT ARG_BOARD)
    set(ARG_ISA c99) # this PC's instructions would not do, and nothing says which would
  endif()
  foreach(option ${_nnbuild_options})
    if(option STREQUAL "WEIGHTS" OR NOT DEFINED ARG_${option})
      continue()
    endif()
    set(value "${ARG_${option}}")
    if(option MATCHES "^(CALIBRATE|LABELS|FEATURES)$")
      get_filename_component(value "${value}" ABSOLUTE)
      list(APPEND NNBUILD_SAMPLES "${value}")
    elseif(option STREQUAL "DEVICE" AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${value}")
      get_filename_component(value "${value}" ABSOLUTE)
    endif()
    string(TOLOWER "--${option}" word)
    string(REPLACE "_" "-" word "${word}")
    list(APPEND ${result} "${word}" "${value}")
  endforeach()
  foreach(option ${_nnbuild_lists})
    string(TOLOWER "--${option}" word)
    foreach(each ${ARG_${option}})
      list(APPEND ${result} "${word}" "${each}")
    endforeach()
  endforeach()
  if(ARG_NO_BIAS_CORRECTION)
    list(APPEND ${result} --no-bias-correction)
  endif()
endmacro()

# A list from the facts of a device.
function(_nnbuild_words result facts name)
  set(words)
  string(JSON count LENGTH "${facts}" device ${name})
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      string(JSON word GET "${facts}" device ${name} ${index})
      list(APPEND words "${word}")
    endforeach()
  endif()
  set(${result} "${words}" PARENT_SCOPE)
endfunction()

# The build's outputs as far as known beforehand: NNBUILD_FORM of the constants, and sizes for properties.
# The sizes are those of the last build of this model with these options, otherwise derived from the shapes; calibration
# may change them by some bytes. For a device: NNBUILD_BESIDE, its files, and flags. Writes nothing. A missing model is
# no error here, and an unreadable one causes only a warning: the build reports the error.
macro(_nnbuild_expect folder model prefix arguments)
  set(NNBUILD_ARENA)
  set(NNBUILD_STATE)
  set(NNBUILD_FLASH)
  set(NNBUILD_BESIDE)
  set(NNBUILD_BESIDE_FLAGS)
  set(NNBUILD_BESIDE_LINK)
  set(NNBUILD_FORM "${ARG_WEIGHTS}")
  if(NOT NNBUILD_FORM OR NNBUILD_FORM STREQUAL "auto")
    set(NNBUILD_FORM auto)
  endif()
  if(MSVC OR WIN32 OR APPLE)
    set(NNBUILD_FORM array) # the .S is written for ELF
  endif()
  set(NNBUILD_HEARING) # what is printed for FEATURES
  if(ARG_FEATURES)
    foreach(_part features listen)
      list(APPEND NNBUILD_HEARING "${prefix}_${_part}.h" "${prefix}_${_part}.c")
    endforeach()
  endif()
  set(_quick ${${arguments}})
  foreach(_slow --accuracy-drop --prune --share --weights-bits --flash)
    list(FIND _quick ${_slow} _at)
    if(NOT _at EQUAL -1)
      list(REMOVE_AT _quick ${_at})
      list(REMOVE_AT _quick ${_at})
    endif()
  endforeach()
  execute_process(
    COMMAND ${NNBUILD_COMMAND} compile "${model}" ${_quick} --name "${prefix}" --weights ${NNBUILD_FORM} --dry-run --json
    RESULT_VARIABLE _status OUTPUT_VARIABLE _facts ERROR_VARIABLE _said)
  if(_status EQUAL 0)
    string(JSON NNBUILD_ARENA GET "${_facts}" arena)
    string(JSON NNBUILD_STATE GET "${_facts}" state)
    string(JSON NNBUILD_FLASH GET "${_facts}" weights)
    string(JSON NNBUILD_FORM GET "${_facts}" form)
    if(ARG_FEATURES) # whose files may have a name of their own
      string(JSON _count LENGTH "${_facts}" files)
      math(EXPR _last "${_count} - 1")
      set(NNBUILD_HEARING)
      foreach(_at RANGE ${_last})
        string(JSON _file GET "${_facts}" files ${_at})
        if(_file MATCHES "_(features|listen)[.][ch]$")
          list(APPEND NNBUILD_HEARING "${_file}")
        endif()
      endforeach()
    endif()
    if(ARG_DEVICE)
      _nnbuild_words(NNBUILD_BESIDE "${_facts}" files)
      _nnbuild_words(NNBUILD_BESIDE_FLAGS "${_facts}" flags)
      _nnbuild_words(NNBUILD_BESIDE_LINK "${_facts}" link)
    endif()
    set(_built "${folder}/${prefix}.json")
    set(_record "${folder}/contents.txt")
    set(_hash)
    if(EXISTS "${_built}" AND EXISTS "${_record}" AND EXISTS "${model}")
      file(SHA256 "${model}" _hash)
      file(STRINGS "${_record}" _same REGEX "^${_hash} ")
    endif()
    if(_hash AND _same AND NOT "${_record}" IS_NEWER_THAN "${_built}" AND
       NOT "${folder}/options.txt" IS_NEWER_THAN "${_built}")
      file(READ "${_built}" _facts)
      string(JSON NNBUILD_ARENA GET "${_facts}" arena)
      string(JSON NNBUILD_STATE GET "${_facts}" state)
      string(JSON NNBUILD_FLASH GET "${_facts}" weights)
    endif()
  else()
    if(EXISTS "${model}")
      message(WARNING "${_said}")
    elseif(ARG_DEVICE)
      message(FATAL_ERROR "nnbuild: ${model} does not exist, and with a DEVICE the list of the build's files depends on it when CMake "
        "configures. Create the model first.")
    endif()
    if(NNBUILD_FORM STREQUAL "auto")
      set(NNBUILD_FORM binary) # right for any size
    endif()
  endif()
endmacro()
