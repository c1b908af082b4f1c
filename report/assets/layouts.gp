# Layouts of one model and workload on one scale: the fastest clear layout of each group is 1; the second part of a bar is
# what the arm adds.
set yrange [ROWS-0.3:(NARROW ? -1.0 : -0.7)]
set lmargin at screen NARROW ? 14.0 / PX : (LABELS * 7.1 + 24) / PX
set border 1
unset ytics
set grid xtics lt 1 lw 0.6 lc rgb GRIDC
set xrange [0:NARROW ? 1.2 * HI : HI]
STEP = nice(HI / (NARROW ? 5.0 : 8.0))
set xtics (); do for [i = 0:int(floor(HI / STEP))] { set xtics add (sprintf("%g", i * STEP) i * STEP) }
set xlabel "time a token, fastest clear layout of its group = 1" offset 0,0.2
set tmargin at screen at(NARROW ? 148 : 108)
set key at screen (NARROW ? 0.02 : (LABELS * 7.1 + 10) / PX), screen at(NARROW ? 92 : 56) left Left reverse vertical samplen 0.8
B = NARROW ? 0.18 : 0.30
UP = 0.42
plot DATA index 2 using (0):1:(0):3:($1 - B):($1 + B) with boxxyerror fc rgb C0 fs solid 0.92 noborder lc rgb C0 title name_of(1), \
  DATA index 2 using (0):1:3:4:($1 - B):($1 + B) with boxxyerror fc rgb C1 fs solid 0.92 noborder lc rgb C1 title name_of(2), \
  DATA index 2 using ($4 > $3 ? $4 : $3):1:6 with labels left offset character 0.8,0 tc rgb MUTED, \
  DATA index 2 using (0):1:(NARROW ? "" : stringcolumn(5)) with labels right offset character -1,0 tc rgb INK, \
  DATA index 2 using (0):($1 - UP):(NARROW ? stringcolumn(5) : "") with labels left tc rgb INK
