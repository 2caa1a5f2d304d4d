# Draws the rate of each operation over that of memcpy of the float32 matrix. table holds the rows of the tab-separated table, chart is the PNG to write.
set terminal pngcairo size 1000,700 font "Sans,10"
set output chart
set datafile separator "\t"
set style data boxes
set style fill solid 0.6 noborder
set boxwidth 0.7
set title "Rate over memcpy of the same float32 matrix (bars: median; whiskers: spread over rounds)"
set ylabel "x memcpy"
set yrange [0:*]
set grid y
unset key
set xtics rotate by -55 left nomirror
set arrow from graph 0, first 1 to graph 1, first 1 nohead dashtype 2 lc rgb "#888888"
plot table using 0:4:xtic(1) lc rgb "#2a6f97", "" using 0:4:5:6 with yerrorbars pt 0 lc rgb "#333333"
