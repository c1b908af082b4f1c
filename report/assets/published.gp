# Published overheads, each with its range; the band is what this report's own cells span.
set yrange [ROWS-0.3:-0.7]
set lmargin at screen NARROW ? 14.0 / PX : (LABELS * 6.6 + 24) / PX
set border 1
unset ytics
set grid xtics lt 1 lw 0.6 lc rgb GRIDC
set xrange [LO:HI]
STEP = nice((HI - LO) / (NARROW ? 4.0 : 8.0))
eval pct_tics
set xlabel "time added, per cent" offset 0,0.2
set tmargin at screen at(NARROW ? 136 : 88)
set key at screen (NARROW ? 0.02 : (LABELS * 6.6 + 10) / PX), screen at(NARROW ? 92 : 56) left Left reverse horizontal samplen 0.8 maxrows 1 width -2
if (OWN_HI >= OWN_LO) { set object 1 rectangle from first OWN_LO, graph 0 to first OWN_HI, graph 1 fc rgb C1 fs transparent solid 0.14 noborder back }
set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead lc rgb MUTED lw 1.2 back
UP = 0.40
plot DATA index 2 using ($5 == 0 ? ($2 + $3) / 2 : NaN):1:2:3 with xerrorbars lc rgb C0 lw 1.8 pt 7 ps 0.6 title name_of(1), \
  DATA index 2 using ($5 == 1 ? ($2 + $3) / 2 : NaN):1:2:3 with xerrorbars lc rgb C4 lw 1.8 pt 5 ps 0.6 title name_of(2), \
  DATA index 2 using (HI):1:6 with labels right offset character -0.5,0 tc rgb MUTED, \
  NaN with boxes fc rgb C1 fs transparent solid 0.3 noborder title name_of(3), \
  DATA index 2 using (LO):1:(NARROW ? "" : stringcolumn(4)) with labels right offset character -1,0 tc rgb INK, \
  DATA index 2 using (LO):($1 - UP):(NARROW ? stringcolumn(4) : "") with labels left tc rgb INK
