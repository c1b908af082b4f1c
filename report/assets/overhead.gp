# One row a cell, one point an arm, its 95 % interval; the wide form names cells at the left, the narrow one above each row.
set yrange [ROWS-0.3:-0.7]
set lmargin at screen NARROW ? 14.0 / PX : (LABELS * 7.1 + 24) / PX
set border 1
eval pct_axis
set xlabel "time added, per cent of the baseline" offset 0,0.2
set grid xtics lt 1 lw 0.6 lc rgb GRIDC
unset ytics
set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead lc rgb (NARROW ? GRIDC : MUTED) lw 1.2 back
if (ARMS > 1) { set key bottom right Left reverse } else { set key off }
UP = 0.38
SHIFT(a) = (a - (ARMS + 1) / 2.0) * 0.22
plot for [a = 1:ARMS] DATA index 2 using ($2 == a ? u($3) : NaN):($1 + SHIFT(a)):(u($4)):(u($5)) with xerrorbars lc rgb colour(a) lw 1.6 pt 7 ps 0.7 title (ARMS > 1 ? name_of(a) : ""), \
  DATA index 2 using (u($5)):1:7 with labels left offset character 0.8,0 tc rgb MUTED, \
  DATA index 2 using (u(LO)):1:(NARROW ? "" : stringcolumn(6)) with labels right offset character -1,0 tc rgb INK, \
  DATA index 2 using (u(LO)):($1 - UP):(NARROW ? stringcolumn(6) : "") with labels left tc rgb INK
