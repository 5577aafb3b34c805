#!/bin/sh
# The main program of deploy/migrate, a Job's `report`: listens on 8080 while it works, tells StatsD one number as its last act,
# and ends. The options after --month are the endings of the tests; the rest is a Job that takes half a minute.
set -u
ending=0
for option in "$@"; do
  case $option in
    --fail) ending=3 ;;
    --fail-once-in=*)
      marker=${option#*=}/failed
      [ -e "$marker" ] || { : >"$marker" && ending=3; } ;;
    --killed) ending=killed ;;
    --hoard) ending=hoard ;;
  esac
done
httpd -f -p 8080 -h /tmp &
server=$!
sleep "${REPORT_SECONDS:-25}"
echo 'report_rows:42|c' | nc -w 1 127.0.0.1 9125 2>/dev/null
kill "$server"
wait "$server"
echo "report ends: $ending"
case $ending in
  killed) kill -KILL $$ ;;
  hoard) exec dd if=/dev/zero of=/dev/null bs=256M count=1 ;;
  *) exit "$ending" ;;
esac
