/* SPDX-License-Identifier: Apache-2.0
 * The files of report/assets, in the program itself, so that a report needs no installation. */
#ifndef CCT_REPORT_ASSETS_H
#define CCT_REPORT_ASSETS_H

/* X(identifier, file) */
#define CCT_ASSETS(X)                                                                                                  \
  X(style_gp, "style.gp")                                                                                              \
  X(overhead_gp, "overhead.gp")                                                                                        \
  X(load_gp, "load.gp")                                                                                                \
  X(size_gp, "size.gp")                                                                                                \
  X(shares_gp, "shares.gp")                                                                                            \
  X(sweep_gp, "sweep.gp")                                                                                              \
  X(choices_gp, "choices.gp")                                                                                          \
  X(layouts_gp, "layouts.gp")                                                                                          \
  X(published_gp, "published.gp")                                                                                      \
  X(noise_gp, "noise.gp")                                                                                              \
  X(page_css, "page.css")                                                                                              \
  X(published_tsv, "../../data/published.tsv")

#define CCT_ASSET_DECLARE(id, file) extern const char cct_asset_##id[];
CCT_ASSETS(CCT_ASSET_DECLARE)
#undef CCT_ASSET_DECLARE

#endif
