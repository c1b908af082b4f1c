# The house style of every figure, and the four forms it is drawn in. OUT: svg | narrow | png | pdf; W, H: pixels of the wide
# form; NW, NH: of the narrow one (a phone). `gnuplot NAME.gp` draws all four again from NAME.dat.
FONT = "Inter"                     # fontconfig puts DejaVu Sans in its place where Inter is missing
INK = "#1F2933"; MUTED = "#6B7785"; GRIDC = "#E3E7EB"
C0 = "#0072B2"; C1 = "#D55E00"; C2 = "#009E73"; C3 = "#CC79A7"; C4 = "#E69F00"; C5 = "#56B4E9"   # Okabe and Ito 2008
array COLOUR[6] = [C0, C1, C2, C3, C4, C5]
colour(i) = COLOUR[int(i) % 6 + 1]
NARROW = OUT eq "narrow"
if (OUT eq "svg") { set term svg size W,H dynamic noenhanced font FONT.",13" name NAME }
if (NARROW) { set term svg size NW,NH dynamic noenhanced font FONT.",13" name NAME }
if (OUT eq "png") { set term pngcairo size 2*W,2*H noenhanced font FONT.",9.75" fontscale 2 linewidth 2 pointscale 2 }
if (OUT eq "pdf") { set term pdfcairo size W/96.0,H/96.0 noenhanced font FONT.",9.75" }
set output NARROW ? NAME."-narrow.svg" : NAME.".".OUT
PX = NARROW ? NW : W               # the drawing's width and height in pixels
PY = NARROW ? NH : H
set encoding utf8
set datafile separator "\t"
set border 3 lw 1.0 lc rgb MUTED
set tics nomirror out scale 0.5,0.25 textcolor rgb INK
set grid back
set key top left Left reverse samplen 1.6 spacing 1.25 noautotitle tc rgb INK
set pointintervalbox 0
set errorbars small
set style fill solid 0.92 noborder
# Title, subtitle, note and label come as data (index 0), so that no text of a run is ever part of a command.
TITLE = ""; SUBTITLE = ""; NOTE = ""; LABEL = ""
stats DATA index 0 using (TITLE = stringcolumn(1), SUBTITLE = stringcolumn(2), NOTE = stringcolumn(3), LABEL = stringcolumn(4), 0) nooutput
# Names of the series (index 1), for the key.
array NAMES[16]
stats DATA index 1 using (NAMES[int($1)] = stringcolumn(2), 0) nooutput
name_of(i) = NAMES[int(i)]
# Heights in pixels from the top: title, lines of the subtitle; the drawing begins below them.
at(y) = 1 - y / (1.0 * PY)
BOLD = FONT.":Bold,".(OUT eq "png" || OUT eq "pdf" ? "10.5" : "14")
set label 101 TITLE at screen 0, screen at(16) left offset character 0.3,0 tc rgb INK font BOLD
set label 102 NARROW ? SUBTITLE : SUBTITLE."; ".NOTE at screen 0, screen at(38) left offset character 0.3,0 tc rgb MUTED
if (NARROW) { set label 103 NOTE at screen 0, screen at(58) left offset character 0.3,0 tc rgb MUTED }
set label 104 LABEL at screen 1, screen at(NARROW ? 80 : 16) right offset character -0.5,0 tc rgb C1 font BOLD
TOP = at(NARROW ? 100 : 64)
BOTTOM = 60.0 / PY
set tmargin at screen TOP
set bmargin at screen BOTTOM
set rmargin at screen 1 - (NARROW ? 14.0 : 24.0) / PX
byt(b) = b < 1024. ? sprintf("%d B", b) : b < 1048576. ? sprintf("%d KiB", b / 1024.) : b < 1073741824. ? sprintf("%d MiB", b / 1048576.) : sprintf("%d GiB", b / 1073741824.)
# Ticks every `step`, signed per cents, 0 without a sign.
pct(v) = abs(v) < 1e-9 ? "0" : sprintf(NARROW ? "%+g" : "%+g %%%%", v)
power10(x) = 10 ** floor(log10(x))
nice(x) = x / power10(x) <= 1 ? power10(x) : x / power10(x) <= 2 ? 2 * power10(x) : x / power10(x) <= 5 ? 5 * power10(x) : 10 * power10(x)
# An axis of per cents from LO to HI. WIDE: linear near 0, logarithmic from about 2 % on; data then stands at u(x). On a phone
# there is more room beyond, for the value behind the last point.
if (!exists("WIDE")) { WIDE = 0 }
ROOM = 0.14
u(x) = WIDE ? asinh(x / 2.0) : x
tick(i) = sgn(i) * (abs(i) % 2 == 1 ? 1 : 3) * 10 ** int((abs(i) - 1) / 2)
pct_axis = "XHI = u(HI) + (NARROW ? ROOM : 0) * (u(HI) - u(LO)); set xrange [u(LO):XHI]; set xtics (); GAP = (XHI - u(LO)) * (NARROW ? 0.12 : 0.055); " \
  ."STEP = nice((HI - LO) / (NARROW ? 4.0 : 8.0)); if (!WIDE) { do for [i = int(ceil(LO / STEP)):int(floor(HI / STEP))] { set xtics add (pct(i * STEP) i * STEP) } } else { " \
  ."set xtics add (pct(0) u(0)); do for [s in '1 -1'] { LAST = 0.0; do for [i = 1:10] { X = tick(i * int(s)); " \
  ."if (abs(u(X) - u(LAST)) >= GAP && X <= HI && X >= LO) { set xtics add (pct(X) u(X)); LAST = X } } } }"
# The key of SERIES lines stands above the drawing, one below the other, and is never drawn over.
key_above = "set tmargin at screen at((NARROW ? 98 : 62) + 20 * SERIES); set key at screen (NARROW ? 0.01 : 0.005), screen at(NARROW ? 92 : 54) left Left reverse vertical spacing 1.15"
set xlabel tc rgb INK
set ylabel tc rgb INK
