# Which choice holds for which size: a row a collective, a box a size; a number names the choice, grey is the library's own.
set lmargin at screen (NARROW ? 14.0 : LABELS * 7.4 + 24) / PX
set border 1
unset ytics
unset grid
set logscale x 2
unset mxtics
set xtics (); do for [e = EXP_LO:EXP_HI:(NARROW ? EXP_STEP * 2 : EXP_STEP)] { set xtics add (byt(2.**e) 2.**e) }
set xrange [2.**(EXP_LO - 0.6):2.**(EXP_HI + 0.6)]
set yrange [ROWS - 0.4:(NARROW ? -0.9 : -0.6)]
set xlabel "size" offset 0,0.2
eval key_above
EDGE = 2.**(0.5 * EXP_GAP - 0.04)
B = NARROW ? 0.24 : 0.36
fill(k) = k == SERIES ? 0xDDE2E7 : int(real("0x".substr(colour(k), 2, 7)))
plot for [k = 1:SERIES] DATA index 2 using ($3 == k ? $1 : NaN):2:($1 / EDGE):($1 * EDGE):($2 - B):($2 + B) with boxxyerror fc rgb fill(k) fs solid (k == SERIES ? 0.8 : 0.92) noborder title name_of(k), \
  DATA index 2 using ($3 == SERIES ? NaN : $1):2:(sprintf("%d", $3)) with labels center tc rgb "#FFFFFF" notitle, \
  DATA index 3 using (2.**(EXP_LO - 0.6)):1:(NARROW ? "" : stringcolumn(2)) with labels right offset character -1,0 tc rgb INK notitle, \
  DATA index 3 using (2.**(EXP_LO - 0.5)):($1 - 0.42):(NARROW ? stringcolumn(2) : "") with labels left tc rgb INK notitle
