# Prints the names of the functions and objects that public headers declare, one a line, from what the compiler's preprocessor (-E) makes of them.
/^# [0-9]+ "/ { ours = $3 ~ /include\/mxgold\/|formats\//; next }
/^#/ || !ours { next }
{ text = text " " $0 }
END {
  gsub(/extern +"C" *\{/, " ", text)
  gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, " ", text)
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    if (c == "{") {
      if (!depth++) body = statement ~ /\) *$/
    } else if (c == "}") {
      # The last brace of extern "C" closes nothing that was counted.
      if (depth && !--depth && body) statement = ""
    } else if (!depth && c == ";") {
      declared(statement)
      statement = ""
    } else if (!depth) statement = statement c
  }
}
function declared(s) {
  if (s ~ /^[ \t]*(typedef|static)/) return
  if (match(s, /[A-Za-z_][A-Za-z_0-9]* *\(/)) s = substr(s, RSTART, RLENGTH - 1)
  else if (s ~ /^[ \t]*extern/) { gsub(/\[[^]]*\]/, "", s); sub(/=.*/, "", s) }
  else return
  gsub(/[ \t]+$/, "", s)
  sub(/.*[^A-Za-z_0-9]/, "", s)
  print s
}
