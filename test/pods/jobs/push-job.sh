#!/bin/sh
# The same job as push_job.py with curl, or with wget of busybox.
set -eu
client=$1 url=$2/metrics/job/$1/run/$3 final=$4 ms=$5
push() {
  case $client in
    curl) echo "job_rows $1" | curl --silent --show-error --fail --data-binary @- "$url" ;;
    wget) busybox wget -q -O - --post-data "job_rows $1
" "$url" ;;
  esac
}
push 1
sleep "$(echo "$ms" | sed 's/\(...\)$/.\1/')"
push "$final"
