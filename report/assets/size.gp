# The ratio of times against the size of what is moved: one line a series, its interval as a band.
set lmargin at screen (NARROW ? 52.0 : 66.0) / PX
set logscale x 2
unset mxtics
set xtics (); do for [e = EXP_LO:EXP_HI:(NARROW ? EXP_STEP * 2 : EXP_STEP)] { set xtics add (byt(2.**e) 2.**e) }
set xrange [2.**(EXP_LO - 0.4):2.**(EXP_HI + 0.4)]
set yrange [LO:HI]
set ytics
set format y "%.4g×"
set grid ytics lt 1 lw 0.6 lc rgb GRIDC
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lc rgb MUTED lw 1.2 dt (6,4) back
set xlabel "size" offset 0,0.2
eval key_above
plot for [k = 1:SERIES] DATA index (k + 1) using 1:3:4 with filledcurves fc rgb colour(k) fs transparent solid 0.16 noborder notitle, \
  for [k = 1:SERIES] DATA index (k + 1) using 1:2 with linespoints lc rgb colour(k) dt solid lw 2 pt 7 ps 0.55 title name_of(k)
