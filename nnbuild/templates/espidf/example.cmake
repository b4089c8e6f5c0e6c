# @PREFIX@: printed by nnbuild
cmake_minimum_required(VERSION 3.16)
include($ENV{IDF_PATH}/tools/cmake/project.cmake)
project(@PREFIX@_classify)
