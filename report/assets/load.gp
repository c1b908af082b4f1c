# What requests see as load grows: one panel a figure of merit, one line an arm, medians solid and 99th percentiles dashed, each with
# its intervals, those of the latter dashed and capped (vectors: the points of error bars would blank what lies beneath). Dataset 3 + ARMS * (p - 1) + a has panel
# p of arm a (both from 1): x, value, lo, hi, p99, its lo, hi.
array PANEL[PANELS]
AXIS = ""
stats DATA index 2 using (PANEL[int($1)] = stringcolumn(2), 0) nooutput
stats DATA index 3 using (AXIS = stringcolumn(1), 0) nooutput
COLUMNS = NARROW ? 1 : 2
WIDTH = PX / (1.0 * COLUMNS)
KEYS = NARROW ? ARMS + 1 + LIMITS : ARMS     # rows: arms, and beside or below them what dashes are
TOPMOST = (NARROW ? 98 : 62) + 20 * KEYS
set key at screen (NARROW ? 0.01 : 0.005), screen at(NARROW ? 92 : 54) left Left reverse vertical maxrows KEYS spacing 1.15
set grid ytics lt 1 lw 0.6 lc rgb GRIDC
if (LOG) { set logscale x 2 }
unset mxtics
set xtics (); do for [i = 1:TICKS] { set xtics add (sprintf("%g", TICK[i]) TICK[i]) }
set xrange [X_LO:X_HI]
# Side by side, so that intervals of neighbouring lines stay apart: an arm's median and, in panels that have it, its tail.
APART(p) = 0.1 / ((1 + TAIL[p]) * ARMS) < 0.012 ? 0.1 / ((1 + TAIL[p]) * ARMS) : 0.012
DODGED(x, d) = LOG ? x * (X_HI / X_LO) ** d : x + d * (X_HI - X_LO)
AT(x, p, a, tail) = DODGED(x, APART(p) * ((1 + TAIL[p]) * (a - 1) + tail - ((1 + TAIL[p]) * ARMS - 1) / 2.0))
count(v) = v >= 10000 ? sprintf("%gk", v / 1000.) : sprintf("%g", v)
SET(p, a) = 3 + ARMS * (p - 1) + a
set multiplot
do for [p = 1:PANELS] {
  if (p == 2) { unset label 101; unset label 102; unset label 103; unset label 104; set key off }
  C = (p - 1) % COLUMNS; R = (p - 1) / COLUMNS
  set lmargin at screen (C * WIDTH + (NARROW ? 52.0 : 62.0)) / PX
  set rmargin at screen ((C + 1) * WIDTH - (NARROW ? 14.0 : 24.0)) / PX
  set tmargin at screen at(TOPMOST + 32 + R * PITCH)
  set bmargin at screen at(TOPMOST + (R + 1) * PITCH - 60)
  set label 1 PANEL[p] at graph 0, graph 1 offset character 0,0.8 left tc rgb INK
  if (p + COLUMNS > PANELS) { set xlabel AXIS offset 0,0.2 } else { unset xlabel }
  set yrange [LO[p]:HI[p]]
  set ytics ()
  if (LOGY[p]) {
    set logscale y 10
    do for [e = int(floor(log10(LO[p]))):int(ceil(log10(HI[p])))] { do for [m in (HI[p] / LO[p] < 300 ? "1 2 5" : "1")] {
      V = m * 10. ** e
      if (V >= LO[p] && V <= HI[p]) { set ytics add (count(V) V) }
    } }
  } else {
    unset logscale y
    STEP = nice(HI[p] / 7.0)
    do for [i = 0:int(floor(HI[p] / STEP))] { set ytics add (count(i * STEP) i * STEP) }
  }
  plot LIMIT[p] > 0 ? LIMIT[p] : NaN with lines lc rgb MUTED dt (6,4) lw 1.2 notitle, \
    for [a = 1:TAIL[p] * ARMS] DATA index SET(p, a) using (AT($1, p, a, 1)):5 with linespoints lc rgb colour(a - 1) dt (8,4) lw 1.4 pt 6 ps 0.5 notitle, \
    for [a = 1:TAIL[p] * ARMS] DATA index SET(p, a) using (AT($1, p, a, 1)):($7 > $6 ? $6 : NaN):(0):($7 - $6) with vectors heads size screen 3.0 / PX,90 nofilled lc rgb colour(a - 1) dt (3,2) lw 1.2 notitle, \
    for [a = 1:ARMS] DATA index SET(p, a) using (AT($1, p, a, 0)):2 with linespoints lc rgb colour(a - 1) dt solid lw 2 pt 7 ps 0.5 title name_of(a), \
    for [a = 1:ARMS] DATA index SET(p, a) using (AT($1, p, a, 0)):3:(0):($4 - $3) with vectors nohead lc rgb colour(a - 1) dt solid lw 1.2 notitle, \
    NaN with linespoints lc rgb MUTED dt (8,4) lw 1.4 pt 6 ps 0.5 title INTERVALS ? "99th percentile, its interval capped" : "99th percentile", \
    for [i = 1:LIMITS] NaN with lines lc rgb MUTED dt (6,4) lw 1.2 title "limit of --slo"
}
unset multiplot
