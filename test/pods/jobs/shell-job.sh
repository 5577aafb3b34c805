#!/bin/sh
# The same job as python_job.py without a page of its own: it pushes to a Pushgateway in its pod (JOB_PUSH_URL) every 200 ms and
# at its end, and exits at once. JOB_MS as there, and so are its lines.
set -eu
echo started
started_at=$(date +%s%3N)
while :; do
  worked=$(($(date +%s%3N) - started_at))
  printf '# TYPE job_worked_milliseconds_total counter\njob_worked_milliseconds_total %s\n' "$worked" |
    curl --silent --show-error --fail --data-binary @- "$JOB_PUSH_URL"
  [ "$worked" -lt "$JOB_MS" ] || break
  sleep 0.2
done
echo "{\"final\":$worked,\"reads\":[]}"
