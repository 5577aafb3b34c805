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
# Only for what is said here: in a pod, without a kubeconfig, kubectl knows its namespace by itself.
[ -n "$namespace" ] || namespace=$(kubectl config view --minify --output=jsonpath='{..namespace}' 2>/dev/null)
where=${namespace:+ in $namespace}

# Asks again for a minute after an answer: a control plane that restarts ends no wait of an hour.
began=$(date +%s) answered=0
ask() {
  until kubectl "$@" ${namespace:+"--namespace=$namespace"} --request-timeout=30s; do
    [ "$(date +%s)" -lt $((answered + 60)) ] || return 1
    sleep 2
  done
}
get_job() {
  ask get job "$job" --ignore-not-found \
    --output=jsonpath='{.metadata.name} {.status.conditions[?(@.status=="True")].type}'
}
# A line for each pod. lastscrape is a container of its own, or in the exporter's place; a regular container or a native sidecar.
get_reports() {
  for container in lastscrape locust-metrics-exporter; do
    message="{.status['containerStatuses','initContainerStatuses'][?(@.name=='$container')].state.terminated.message}"
    found=$(ask get pods --selector="batch.kubernetes.io/job-name=$job" --sort-by=.metadata.creationTimestamp \
      --output=jsonpath="{range .items[$1]}$message{'\n'}{end}") ||
      say "cannot ask for the pods of the Job $job$where"
    printf '%s\n' "$found" | grep '"outcome":' && return
  done
}

# A LocustTest's Job comes a moment after it.
appears=0
case $target in locusttest/*) appears=60 ;; esac
while :; do
  found=$(get_job) || cannot_tell "cannot ask for the Job $job$where"
  answered=$(date +%s)
  waited=$((answered - began))
  # In a Complete Job a pod that failed was repeated; of several that succeeded each has its verdict.
  case $found in
    *Complete*) ended=Complete; reports=$(get_reports '?(@.status.phase=="Succeeded")'); break ;;
    *Failed*) ended=Failed; reports=$(get_reports '*'); break ;;
    '') [ "$waited" -lt "$appears" ] || cannot_tell "no Job $job$where" ;;
  esac
  [ "$waited" -lt "$limit" ] || cannot_tell "the Job $job$where has not ended within $limit s"
  sleep 2
done

[ -z "$reports" ] || printf '%s\n' "$reports"
unjudged=$(printf '%s\n' "$reports" | grep -v '"verdict":"passed"')
# In a string of the report each quote has a backslash before it: no label can look like this.
case $ended$reports in
  *'"verdict":"failed"'*) exit 1 ;;
  Failed*'"verdict":"passed"'*) say "the thresholds passed, and the Job $job failed by itself"; exit 1 ;;
  Failed) say "the Job $job failed, and no pod of it has a report of lastscrape"; exit 1 ;;
  Failed*) say "the Job $job failed"; exit 1 ;;
  Complete) cannot_tell "the Job $job is Complete, and no pod of it has a report of lastscrape" ;;
  *) [ -n "$unjudged" ] || exit 0; cannot_tell "a report has no verdict: is LASTSCRAPE_FAIL_IF set, and is outcome misconfigured?" ;;
esac
