#!/bin/sh
# Waits for a Job or a LocustTest to end, prints lastscrape's report, and ends with its verdict.
#   verdict.sh [--namespace NAMESPACE] [--timeout SECONDS] job/NAME|locusttest/NAME
# Exit codes: 0 passed; 1 failed, by a threshold or the Job itself; 2 cannot tell: the reason is on stderr.
# Needs kubectl, and the right to get Jobs and list pods. The time limit is 3600 s.
set -u

say() { echo "verdict.sh: $*" >&2; }
cannot_tell() { say "$*"; exit 2; }
usage() { cannot_tell 'usage: verdict.sh [--namespace NAMESPACE] [--timeout SECONDS] job/NAME|locusttest/NAME'; }

namespace='' limit=3600 target=''
while [ $# -gt 0 ]; do
  case $1 in
    -n | --namespace) [ $# -gt 1 ] || usage; namespace=$2; shift 2 ;;
    -t | --timeout) [ $# -gt 1 ] || usage; limit=$2; shift 2 ;;
    -*) usage ;;
    *) [ -z "$target" ] || usage; target=$1; shift ;;
  esac
done
case $limit in '' | *[!0-9]*) usage ;; esac
# The operator's Job of a LocustTest's master.
case $target in
  job/?*) job=${target#job/} ;;
  locusttest/?*) job=${target#locusttest/}-master ;;
  *) usage ;;
esac
[ -n "$namespace" ] || namespace=$(kubectl config view --minify --output=jsonpath='{..namespace}') || exit 2
[ -n "$namespace" ] || namespace=default

get_job() {
  kubectl get job "$job" --namespace "$namespace" --ignore-not-found \
    --output=jsonpath='{.metadata.name} {.status.conditions[?(@.status=="True")].type}'
}
# The newest pod's. lastscrape is a container of its own, or in the exporter's place; a regular container or a native sidecar.
get_report() {
  for container in lastscrape locust-metrics-exporter; do
    kubectl get pods --namespace "$namespace" --selector="batch.kubernetes.io/job-name=$job" \
      --sort-by=.metadata.creationTimestamp \
      --output=jsonpath="{.items[-1:].status['containerStatuses','initContainerStatuses'][?(@.name=='$container')].state.terminated.message}" |
      grep '"outcome":' && return
  done
}

# A LocustTest's Job comes a moment after it.
waited=0 appears=0
case $target in locusttest/*) appears=60 ;; esac
while :; do
  found=$(get_job) || cannot_tell "cannot ask for the Job $job in $namespace"
  case $found in
    *Complete*) ended=Complete; break ;;
    *Failed*) ended=Failed; break ;;
    '') [ "$waited" -lt "$appears" ] || cannot_tell "no Job $job in $namespace" ;;
  esac
  [ "$waited" -lt "$limit" ] || cannot_tell "the Job $job in $namespace has not ended within $limit s"
  sleep 2
  waited=$((waited + 2))
done

report=$(get_report)
[ -z "$report" ] || printf '%s\n' "$report"
# In a string of the report each quote has a backslash before it: no label can look like this.
case $ended$report in
  *'"verdict":"failed"'*) exit 1 ;;
  Failed*'"verdict":"passed"'*) say "the thresholds passed, and the Job $job failed by itself"; exit 1 ;;
  Complete*'"verdict":"passed"'*) exit 0 ;;
  Failed) say "the Job $job failed, and no pod of it has a report of lastscrape"; exit 1 ;;
  Failed*) say "the Job $job failed"; exit 1 ;;
  Complete) cannot_tell "the Job $job is Complete, and no pod of it has a report of lastscrape" ;;
  *) cannot_tell "the report has no verdict: is LASTSCRAPE_FAIL_IF set, and is outcome misconfigured?" ;;
esac
