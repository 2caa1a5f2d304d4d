/* Writes an HTML page that needs no other file: its beginning, its end, and text in it. */
#include "page.h"

#include <string.h>

/* The number of bytes of the UTF-8 character that s begins with; 0 if these bytes are no character. */
static int utf8(const char *s) {
  const unsigned char c = (unsigned char)*s;
  const int n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if (((unsigned char)s[i] & 0xc0) != 0x80) return 0;
  return n;
}

void page_text(FILE *f, const char *s) {
  for (; *s; s++) {
    const int n = utf8(s);
    if (n > 1) {
      fwrite(s, 1, (size_t)n, f);
      s += n - 1;
    } else if (!n)
      putc('?', f);
    else if (*s == '&')
      fputs("&amp;", f);
    else if (*s == '<')
      fputs("&lt;", f);
    else if (*s == '>')
      fputs("&gt;", f);
    else if (*s == '"')
      fputs("&quot;", f);
    else
      putc((unsigned char)*s < 0x20 ? '?' : *s, f);
  }
}

/* Charts are drawn in black on nothing: here black becomes the colour of the page's text, so that they are read on a dark page too. */
static const char style[] =
    ":root{color-scheme:light dark;--text:#222;--page:#fff;--line:#ccc;--faint:#e6e6e6;--mark:#eef6ea}"
    "@media (prefers-color-scheme:dark){:root{--text:#ddd;--page:#15171a;--line:#4a4f55;--faint:#2c3036;--mark:#1f2d22}}"
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1180px;padding:0 1em;color:var(--text);background:var(--page)}"
    ".verdict{font-size:17px;border-left:4px solid #1f83c8;padding:.2em .8em;background:var(--mark)}"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums;font-size:12px}"
    "th,td{padding:.15em .45em;border-bottom:1px solid var(--faint);text-align:right;white-space:nowrap}"
    "th.t,td.t{text-align:left}th{border-bottom:2px solid var(--line);cursor:pointer}th[aria-sort=ascending]::after{content:' \\2191'}"
    "th[aria-sort=descending]::after{content:' \\2193'}.wide{overflow-x:auto}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em "
    "1em}"
    "dd{margin:0;overflow-wrap:anywhere}details dl{display:block}"
    "svg{width:100%;height:auto;display:block}svg [fill=black]{fill:currentColor}svg [stroke=black],svg [stroke='rgb(  0,   0,   "
    "0)']{stroke:currentColor}"
    "svg [color=black],svg [color='rgb(  0,   0,   0)']{color:inherit}svg .gridline{stroke:var(--line)}svg image{image-rendering:pixelated}"
    ".one{max-width:680px}.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:1em}"
    ".maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,290px),1fr));gap:.5em}"
    "fieldset{border:1px solid var(--line);margin:1em 0;min-width:0}label{display:inline-block;margin-right:1.2em;font-size:13px}"
    "label i{display:inline-block;width:22px;margin:0 .4em .25em .1em}";

void page_begin(FILE *f, const char *title, const char *verdict) {
  fprintf(f,
          "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
          "content=\"width=device-width\"><title>mxgold</title><style>%s</style>\n<h1>",
          style);
  page_text(f, title);
  fputs("</h1>\n<p class=verdict>", f);
  page_text(f, verdict);
  fputs("</p>\n", f);
}

/* A click on a column's head sorts by it, a second one the other way; cells without a number come last. */
static const char script[] =
    "<script>\n"
    "for(const table of document.querySelectorAll('table'))table.querySelectorAll('th').forEach((head,at)=>head.onclick=()=>{\n"
    " const down=head.getAttribute('aria-sort')=='ascending',rows=[...table.rows].slice(1);\n"
    " for(const h of table.querySelectorAll('th'))h.removeAttribute('aria-sort');\n"
    " head.setAttribute('aria-sort',down?'descending':'ascending');\n"
    " const text=r=>r.cells[at].textContent,number=r=>text(r)=='best'?0:parseFloat(text(r).replace('< ',''));\n"
    " const numbers=!rows.every(r=>isNaN(number(r)));\n"
    " const order=(a,b)=>{if(!numbers)return text(a).localeCompare(text(b));\n"
    "  const x=number(a),y=number(b);return isNaN(x)||isNaN(y)?(isNaN(x)-isNaN(y))*(down?-1:1):x-y};\n"
    " rows.sort((a,b)=>down?order(b,a):order(a,b));for(const r of rows)r.parentNode.append(r)});\n"
    "</script>\n";

void page_end(FILE *f) {
  fputs(script, f);
  fputs("</html>\n", f);
}

void page_terminal(FILE *f, const char *name, int width, int height) {
  fprintf(f, "reset\nset terminal svg size %d,%d font 'sans,12' name '%s'\n", width, height, name);
}

char *page_svg(char **at) {
  static const char end[] = "</svg>";
  char *from = *at ? strstr(*at, "<svg") : NULL, *to = from ? strstr(from, end) : NULL;
  if (!to) return NULL;
  to += sizeof end - 1;
  *at = *to ? to + 1 : NULL; /* a line's end stands there */
  *to = 0;
  return from;
}
