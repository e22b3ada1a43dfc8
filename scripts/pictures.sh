#!/usr/bin/env bash
# Makes the pictures of README.md from the program at bin/disdel: the end of quickstart in a terminal, as SVG, and the page
# of that job in a browser, as PNG. It needs Debian's chromium (scripts/daily-deps.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="$PWD/bin:$PATH"
home=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$home"' EXIT
export DISDEL_HOME="$home/home"

disdel quickstart >"$home/terminal.txt" 2>&1
{
  echo '$ disdel quickstart'
  echo ...
  sed -n '/^round  *11\//,$p' "$home/terminal.txt"
} | awk '
  { gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); line[NR] = $0; if (length > widest) widest = length }
  END {
    width = widest * 7.3 + 32; height = NR * 17 + 28
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", width, height, width, height
    printf "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#1e1e24\"/>\n"
    printf "<g font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"12\" fill=\"#e4e4e8\" xml:space=\"preserve\">\n"
    for (i = 1; i <= NR; i++) if (line[i] != "") printf "<text x=\"16\" y=\"%d\">%s</text>\n", 26 + (i - 1) * 17, line[i]
    print "</g>\n</svg>"
  }' >docs/pictures/terminal.svg

disdel ui --listen 127.0.0.1:0 >"$home/ui.txt" 2>&1 &
server=$!
for _ in $(seq 100); do
  address=$(grep -o 'http://[^ ]*' "$home/ui.txt" | head -1) && [ -n "$address" ] && break
  sleep 0.1
done
# The page without its script, which would keep the browser waiting for events.
job=$(disdel history -o json | grep -o 'job-[0-9a-z]*' | head -1)
curl -sfL -c "$home/cookies" -b "$home/cookies" -o "$home/list.html" "$address"
curl -sf -b "$home/cookies" "${address%/ui/*}/ui/jobs/$job" |
  sed "s|<head>|<head><base href='${address%/ui/*}/'>|; s|<script[^>]*></script>||g" >"$home/page.html"
timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$home/browser" \
  --window-size=1000,730 --timeout=5000 --screenshot=docs/pictures/page.png "file://$home/page.html" 2>/dev/null
ls -l docs/pictures
