# How far each block's median lies from its arm's centre, in the order in which blocks were run; one point a cell and block.
set lmargin at screen (NARROW ? 56.0 : 72.0) / PX
set grid ytics lt 1 lw 0.6 lc rgb GRIDC
set yrange [LO:HI]
set xrange [-0.7:BLOCKS - 0.3]
STEP = nice((HI - LO) / 5.0)
set ytics (); do for [i = int(ceil(LO / STEP)):int(floor(HI / STEP))] { set ytics add (pct(i * STEP) i * STEP) }
set xtics autofreq
set xlabel "block, in the order of boots and rounds" offset 0,0.2
set ylabel NARROW ? "% from the centre" : "from the arm's centre" offset 0.6,0
set tmargin at screen at(NARROW ? 122 : 88)
set key at screen (NARROW ? 0.02 : 0.08), screen at(NARROW ? 92 : 62) left Left reverse horizontal samplen 0.8
set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead lc rgb MUTED lw 1.2 back
do for [i = 1:BOOTS] { set arrow (10 + i) from first BOOT[i] - 0.5, graph 0 to first BOOT[i] - 0.5, graph 1 nohead lc rgb MUTED lw 0.8 dt (2,3) back }
plot for [a = 0:ARMS - 1] DATA index 2 using ($2 == a ? $1 + (a - (ARMS - 1) / 2.0) * 0.16 : NaN):3 with points lc rgb colour(a) pt (a == 0 ? 7 : 5) ps 0.45 title name_of(a + 1)
