# @PREFIX@: printed by nnbuild
idf_component_register(SRCS "main.c")
