#!/bin/sh
# Stands in for kubexit, which no package registry has: `kubexit COMMAND...`. Written from its README and its
# tombstone format (github.com/karlkfi/kubexit), with the trap that counts: a tombstone that was there before is never looked at, only
# one that changes. One death dep, no birth deps, no grace period; it looks once a second, where the original gets events.
set -u
graveyard=${KUBEXIT_GRAVEYARD:-/graveyard}
own=$graveyard/${KUBEXIT_NAME:?}
awaited=$graveyard/${KUBEXIT_DEATH_DEPS:-}
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }
stamp() { stat -c '%i %y' "$awaited" 2>/dev/null; }

mkdir -p "$graveyard"
seen=$(stamp)
"$@" &
child=$!
born=$(now)
# Not atomic, as the original.
printf 'Born: "%s"\n' "$born" >"$own"
trap 'kill -TERM $child' TERM

watch() {
  while sleep 1; do
    [ "$(stamp)" = "$seen" ] && continue
    grep -q '^Died: [^n]' "$awaited" || continue
    echo "stand-in for kubexit: $awaited has Died, TERM for $*"
    kill -TERM $child
    return
  done
}
watcher=
if [ "$awaited" != "$graveyard/" ]; then
  watch "$@" &
  watcher=$!
fi

wait $child
code=$?
# A signal that this shell takes ends the wait, not the child.
while kill -0 $child 2>/dev/null; do
  wait $child
  code=$?
done
[ -z "$watcher" ] || kill "$watcher" 2>/dev/null
printf 'Born: "%s"\nDied: "%s"\nExitCode: %s\n' "$born" "$(now)" "$code" >"$own"
exit $code
