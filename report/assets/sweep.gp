# Time added against one parameter, everything else held: one line a series, with intervals.
set lmargin at screen (NARROW ? 50.0 : 66.0) / PX
set grid ytics lt 1 lw 0.6 lc rgb GRIDC
if (LOG) { set logscale x 2 }
unset mxtics
set xtics (); do for [i = 1:TICKS] { set xtics add (sprintf("%g", TICK[i]) TICK[i]) }
set xrange [X_LO:X_HI]
set yrange [LO:HI]
STEP = nice((HI - LO) / 5.0)
set ytics (); do for [i = int(ceil(LO / STEP)):int(floor(HI / STEP))] { set ytics add (pct(i * STEP) i * STEP) }
if (LO < 0) { set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead lc rgb MUTED lw 1.2 dt (6,4) back }
stats DATA index 2 using (AXIS = stringcolumn(1), 0) nooutput
set xlabel AXIS offset 0,0.2
eval key_above
# Side by side, so that intervals of neighbouring lines stay apart.
DODGE(x, k) = LOG ? x * (X_HI / X_LO) ** (0.006 * (k - (SERIES + 1) / 2.0)) : x + 0.006 * (X_HI - X_LO) * (k - (SERIES + 1) / 2.0)
plot for [k = 1:SERIES] DATA index (k + 2) using (DODGE($1, k)):2 with linespoints lc rgb colour(k) dt solid lw 2 pt 7 ps 0.55 title name_of(k), \
  for [k = 1:SERIES] DATA index (k + 2) using (DODGE($1, k)):3:(0):($4 - $3) with vectors nohead lc rgb colour(k) dt solid lw 1.2 notitle
