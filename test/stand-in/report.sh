#!/bin/sh
# The main program of deploy/migrate, a Job's `report`: listens on 8080 while it works, tells StatsD one number as its last act,
# and ends well: a Job that takes half a minute.
set -u
httpd -f -p 8080 -h /tmp &
server=$!
sleep "${REPORT_SECONDS:-25}"
echo 'report_rows:42|c' | nc -w 1 127.0.0.1 9125 2>/dev/null
kill "$server"
wait "$server"
exit 0
