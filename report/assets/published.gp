# Published overheads, each with its range, below what this report's own cells span.
set yrange [ROWS-0.3:-0.7]
set lmargin at screen NARROW ? 14.0 / PX : (LABELS * 7.1 + 24) / PX
set border 1
unset ytics
set grid xtics lt 1 lw 0.6 lc rgb GRIDC
eval pct_axis
set xlabel "time added, per cent" offset 0,0.2
set tmargin at screen at(NARROW ? 136 : 88)
set key at screen (NARROW ? 0.02 : (LABELS * 7.1 + 10) / PX), screen at(NARROW ? 92 : 56) left Left reverse horizontal samplen 0.8 maxrows 1 width -2
set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead lc rgb (NARROW ? GRIDC : MUTED) lw 1.2 back
UP = 0.40
array ORIGIN[3] = [C0, C4, C1]
plot for [k = 3:1:-1] DATA index 2 using ($5 == k - 1 ? u($2) : NaN):1:(u($3)):(u($4)) with xerrorbars lc rgb ORIGIN[k] lw (k == 3 ? 2.6 : 1.8) pt (k == 2 ? 5 : 7) ps 0.6 title name_of(k), \
  DATA index 2 using (u(LO)):1:(NARROW ? "" : stringcolumn(6)) with labels right offset character -1,0 tc rgb INK, \
  DATA index 2 using (u(LO)):($1 - UP):(NARROW ? stringcolumn(6) : "") with labels left tc rgb INK
