# SPDX-License-Identifier: Apache-2.0
# cmake -DOUT=builtin_rules.c "-DFILES=a.csv;b.csv" -P embed_rules.cmake: the files as arrays, in the order given.
set(arrays "")
set(list "")
set(n 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" length)
  math(EXPR length "${length} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char rules_${n}[] = {${bytes}0};\n")
  string(APPEND list "  {\"${name}\", rules_${n}, ${length}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Generated from data/profiles/rules. */\n#include \"nccl_plugin/tuner/builtin_rules.h\"\n\n${arrays}
const struct cct_builtin_rules cct_builtin_rules[] = {\n${list}  {0},\n};\n")
