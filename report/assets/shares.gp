# One bar a cell, stacked by boundary; the diamond is what was seen. Panels have scales of their own: bars may only be compared
# within one. Panel p: datasets 2p (segments) and 2p + 1 (what was seen).
C6 = "#9AA5B1"
array PARTS[6] = [C0, C4, C2, C3, C5, C6]
set lmargin at screen NARROW ? 14.0 / PX : (LABELS * 7.1 + 24) / PX
set border 1
unset ytics
set grid xtics lt 1 lw 0.6 lc rgb GRIDC
set key at screen (NARROW ? 0.02 : (LABELS * 7.1 + 10) / PX), screen at(NARROW ? 92 : 56) left Left reverse horizontal width -2 samplen 0.8 maxrows (NARROW ? 3 : 2)
set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead lc rgb (NARROW ? GRIDC : MUTED) lw 1.2 front
B = NARROW ? 0.20 : 0.30
UP = 0.42
ROW = NARROW ? 48 : 28
Y = NARROW ? 170 : 108             # pixels from the top to the panel
ROOM = 0.36                        # beyond a bar its value and residual
set multiplot
do for [p = 1:PANELS] {
  if (p == 2) { unset label; set key off }
  LO = FROM[p]; HI = TO[p]
  eval pct_axis
  set tmargin at screen at(Y)
  Y = Y + (ROWS[p] + 0.3) * ROW
  set bmargin at screen at(Y)
  Y = Y + 44
  set yrange [ROWS[p]-0.3:-0.6]
  if (p == PANELS) { set xlabel "time added, per cent of the baseline" offset 0,0.2 }
  plot for [k = 1:6] DATA index (2 * p) using (0):($2 == k ? $1 : NaN):3:4:($1 - B):($1 + B) with boxxyerror fc rgb PARTS[k] fs solid 0.92 noborder lc rgb PARTS[k] title (p == 1 ? name_of(k) : ""), \
    DATA index (2 * p + 1) using 2:1 with points pt 13 ps 1.1 lc rgb INK title (p == 1 ? name_of(7) : ""), \
    DATA index (2 * p + 1) using 4:1:5 with labels left offset character 1.4,0 tc rgb MUTED, \
    DATA index (2 * p + 1) using (LO):1:(NARROW ? "" : stringcolumn(3)) with labels right offset character -1,0 tc rgb INK, \
    DATA index (2 * p + 1) using (LO):($1 - UP):(NARROW ? stringcolumn(3) : "") with labels left tc rgb INK
}
unset multiplot
