/* SPDX-License-Identifier: Apache-2.0 */
#include "report/assets.h"

/* The assembler reads the file: C11 has no #embed, and generated sources would need a second tool. */
#define CCT_ASSET_INCLUDE(id, file)                                                                                    \
  __asm__(".pushsection .rodata\n.global cct_asset_" #id "\ncct_asset_" #id ":\n.incbin \"" CCT_ASSET_FOLDER "/" file  \
          "\"\n.byte 0\n.popsection\n");
CCT_ASSETS(CCT_ASSET_INCLUDE)
