#!/bin/sh
# Waits for a Job or a LocustTest to end, prints lastscrape's reports, and ends with their verdict.
#   verdict.sh [--namespace NAMESPACE] [--timeout SECONDS] [--junit FILE] job/NAME|locusttest/NAME
# stdout: a report a line, as JSON. stderr: a table of them, and why it cannot tell. --junit: the same for CI.
# Exit codes: 0 passed; 1 failed, by a threshold or the Job itself; 2 cannot tell, or not judged.
# Needs kubectl, and the right to get Jobs (LocustTests) and list pods. The time limit is 3600 s.
set -u

say() { echo "verdict.sh: $*" >&2; }
cannot_tell() { say "$*"; end 2 "$*"; }
failed() { say "$*"; end 1 "$*"; }
usage() { say 'usage: verdict.sh [--namespace NAMESPACE] [--timeout SECONDS] [--junit FILE] job/NAME|locusttest/NAME'; exit 2; }

namespace='' limit=3600 target='' junit='' test='' reports=''
while [ $# -gt 0 ]; do
  case $1 in
    -n | --namespace) [ $# -gt 1 ] || usage; namespace=$2; shift 2 ;;
    -t | --timeout) [ $# -gt 1 ] || usage; limit=$2; shift 2 ;;
    --junit) [ $# -gt 1 ] || usage; junit=$2; shift 2 ;;
    -*) usage ;;
    *) [ -z "$target" ] || usage; target=$1; shift ;;
  esac
done
case $limit in '' | *[!0-9]*) usage ;; esac
case $target in
  job/?*) job=${target#job/} ;;
  # The operator writes a dash for each dot of the name.
  locusttest/?*) test=${target#locusttest/} job=$(printf %s-master "${target#locusttest/}" | tr . -) ;;
  *) usage ;;
esac
# Only for what is said here: in a pod, without a kubeconfig, kubectl knows its namespace by itself.
[ -n "$namespace" ] || namespace=$(kubectl config view --minify --output=jsonpath='{..namespace}' 2>/dev/null)
where=${namespace:+ in $namespace}

# A field of the reports (lines "POD REPORT") on stdin, as text. In a string of the report each quote has a
# backslash before it: no label can look like a field.
texts() { sed -E -e "s/^[^ ]+ .*[{,]\"$1\":\"(([^\"\\\\]|\\\\.)*)\".*/\\1/" -e t -e 's/.*//' | sed 's/\\\(["\\/]\)/\1/g'; }
xml() { printf '%s' "$1" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'; }

# Writes FILE of --junit, a case for each pod, and exits. $2: why, where a code other than 0 has no report for it.
end() {
  [ -n "$junit" ] || exit "$1"
  {
    echo '<?xml version="1.0" encoding="UTF-8"?>'
    echo "<testsuite name=\"lastscrape $(xml "$target")\">"
    [ -z "$reports" ] || printf '%s\n' "$reports" | while IFS= read -r line; do
      summary=$(xml "$(printf '%s\n' "$line" | texts summary)")
      echo "<testcase classname=\"$(xml "$target")\" name=\"$(xml "${line%% *}")\">"
      case $(printf '%s\n' "$line" | texts verdict) in
        passed) ;;
        failed) echo "<failure message=\"$summary\"/>" ;;
        *) echo "<error message=\"$summary\"/>" ;;
      esac
      echo "<system-out>$(xml "${line#* }")</system-out></testcase>"
    done
    [ -z "${2:-}" ] || echo "<testcase classname=\"$(xml "$target")\" name=\"verdict\"><error message=\"$(xml "$2")\"/></testcase>"
    echo '</testsuite>'
  } >"$junit" || say "cannot write $junit"
  exit "$1"
}

# Asks again for a minute after an answer: a control plane that restarts ends no wait of an hour.
began=$(date +%s) answered=0
ask() {
  until kubectl "$@" ${namespace:+"--namespace=$namespace"} --request-timeout=30s; do
    [ "$(date +%s)" -lt $((answered + 60)) ] || return 1
    sleep 2
  done
}
get_test() { ask get locusttest "$test" --ignore-not-found --output=jsonpath='{.metadata.uid}/{.metadata.deletionTimestamp}'; }
get_job() {
  ask get job "$job" --ignore-not-found --output=jsonpath="{.metadata.uid}/{.metadata.deletionTimestamp}/\
{.metadata.ownerReferences[*].uid}/{.status.succeeded}/{.status.conditions[?(@.status==\"True\")].type}"
}
# A line for each pod with a report. lastscrape is a container of its own, or in the exporter's place; a regular
# container or a native sidecar.
get_reports() {
  for container in lastscrape locust-metrics-exporter; do
    message="{.status['containerStatuses','initContainerStatuses'][?(@.name=='$container')].state.terminated.message}"
    found=$(ask get pods --selector="batch.kubernetes.io/controller-uid=$uid" --sort-by=.metadata.creationTimestamp \
      --output=jsonpath="{range .items[$1]}{.metadata.name} $message{'\n'}{end}") ||
      say "cannot ask for the pods of the Job $job$where"
    printf '%s\n' "$found" | grep '^[^ ]* {.*"outcome":' && return
  done
}
# The names of the pods that were evicted, preempted or deleted.
get_disrupted() {
  ask get pods --selector="batch.kubernetes.io/controller-uid=$uid" --output=jsonpath="{range .items[*]}{.metadata.name} \
{.metadata.deletionTimestamp}{.status.conditions[?(@.type==\"DisruptionTarget\")].status}{'\n'}{end}" | sed -n 's/ [^ ].*$//p'
}

# What is asked for is the object of now: one of the same name that comes later is another run. The Job of a
# LocustTest comes a moment after it; until then the one of a deleted test may still be there.
first_uid='' test_uid='' appears=0 disrupted=''
[ -z "$test" ] || appears=60
while :; do
  waited=$(($(date +%s) - began))
  found=$([ -z "$test" ] || get_test) || cannot_tell "cannot ask for the LocustTest $test$where"
  IFS=/ read -r now_uid deleted <<END
$found
END
  [ -z "$deleted" ] || now_uid=''
  [ -z "$test_uid" ] || [ "$now_uid" = "$test_uid" ] || cannot_tell "the LocustTest $test$where was deleted while this waited"
  test_uid=$now_uid
  found=$(get_job) || cannot_tell "cannot ask for the Job $job$where"
  answered=$(date +%s)
  IFS=/ read -r uid deleted owners succeeded conditions <<END
$found
END
  case " $owners " in *" $test_uid "*) ;; *) [ -z "$test" ] || uid='' ;; esac
  [ -z "$test" ] || [ -n "$test_uid" ] || uid=''
  [ -z "$deleted" ] || uid=''
  [ -z "$first_uid" ] || [ "$uid" = "$first_uid" ] || cannot_tell "the Job $job$where was deleted while this waited"
  first_uid=$uid
  # In a Complete Job a pod that failed was repeated; of several that succeeded each has its verdict.
  case ${uid:+$conditions} in
    *Complete*) ended=Complete; reports=$(get_reports '?(@.status.phase=="Succeeded")'); break ;;
    *Failed*) ended=Failed; reports=$(get_reports '*'); disrupted=$(get_disrupted); break ;;
  esac
  [ -n "$uid" ] || [ "$waited" -lt "$appears" ] || cannot_tell "no Job $job${test:+ of the LocustTest $test}$where"
  [ "$waited" -lt "$limit" ] || cannot_tell "the Job $job$where has not ended within $limit s"
  sleep 2
done

if [ -n "$reports" ]; then
  printf '%s\n' "$reports" | sed 's/^[^ ]* //'
  printf '| pod | verdict | report |\n|---|---|---|\n' >&2
  printf '%s\n' "$reports" | while IFS= read -r line; do
    verdict=$(printf '%s\n' "$line" | texts verdict)
    printf '| %s | %s | %s |\n' "${line%% *}" "${verdict:-none}" "$(printf '%s\n' "$line" | texts summary | sed 's/|/\\|/g')" >&2
  done
fi
count=$(printf '%s' "$reports" | grep -c '')
unjudged=$(printf '%s\n' "$reports" | grep -v '"verdict":"passed"')
judged=$reports
for pod in $disrupted; do judged=$(printf '%s\n' "$judged" | grep -v "^$pod "); done
case $ended$judged in
  *'"verdict":"failed"'*) end 1 ;;
  *'"verdict":"notJudged"'*) cannot_tell 'a run was cut short, and so not judged' ;;
esac
[ -z "$disrupted" ] || cannot_tell "not judged: $(echo $disrupted) was evicted, preempted or deleted"
case $ended$reports in
  Failed) failed "the Job $job failed, and no pod of it has a report of lastscrape" ;;
  Failed*) [ -z "$unjudged" ] || failed "the Job $job failed"; failed "the thresholds passed, and the Job $job failed by itself" ;;
  Complete) cannot_tell "the Job $job is Complete, and no pod of it has a report of lastscrape" ;;
esac
[ -z "$unjudged" ] || cannot_tell 'a report has no verdict: is LASTSCRAPE_FAIL_IF set, and is outcome misconfigured?'
[ "$count" -ge "${succeeded:-1}" ] || cannot_tell "$succeeded pods of the Job $job succeeded, and $count of them have a report of lastscrape"
end 0
