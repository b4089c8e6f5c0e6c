# @PREFIX@: printed by nnbuild
cmake_minimum_required(VERSION 3.20.0)
# The module itself, where no west.yml names it.
list(APPEND ZEPHYR_EXTRA_MODULES "${CMAKE_CURRENT_SOURCE_DIR}/../..")
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(@PREFIX@_classify)
target_sources(app PRIVATE src/main.c)
