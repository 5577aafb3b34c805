{{/* The image; fails without one. */}}
{{- define "lastscrape.image" -}}
{{- required "image is not set: helm … --set image=HOST/lastscrape:VERSION" .Values.image -}}
{{- end }}

{{/* Variables that an annotation of a pod sets: LASTSCRAPE_QUIT_TIMEOUT is lastscrape.dev/quit-timeout. */}}
{{- define "lastscrape.annotations.jobs" -}}
SCRAPES TTL QUIT QUIT_TIMEOUT FAIL_IF PUSH PUSH_WHEN PUSH_LABELS WEBHOOK DRY_RUN LOG_LEVEL
{{- end }}
{{- define "lastscrape.annotations.all" -}}
METRICS_URL FRONT DONE_WHEN SIDECARS SCRAPES TTL QUIT QUIT_TIMEOUT POLL SETTLE START_TIMEOUT RUN_TIMEOUT TERMINATION_GRACE FAIL_IF TOMBSTONE PUSH PUSH_WHEN PUSH_LABELS WEBHOOK DRY_RUN LOG_LEVEL
{{- end }}

{{/* An entry of `env` as YAML: the variable that an annotation sets. Argument: the name without its prefix. */}}
{{- define "lastscrape.env" -}}
{name: LASTSCRAPE_{{ . }}, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['lastscrape.dev/{{ . | lower | replace "_" "-" }}']"}}}
{{- end }}

{{/* A quantity as a string, which YAML and CEL would else read as a number: 0.5, 1e9, 128974848. */}}
{{- define "lastscrape.quantity" -}}
{{- toYaml (kindIs "string" . | ternary (toString .) (int64 . | toString)) -}}
{{- end }}

{{/* What every lastscrape container has. */}}
{{- define "lastscrape.container" -}}
terminationMessagePolicy: FallbackToLogsOnError
{{- if or .Values.resources.requests .Values.resources.limits }}
resources:
  {{- range $kind := list "requests" "limits" }}
  {{- with $quantities := index $.Values.resources $kind }}
  {{ $kind }}: { {{- range $i, $name := keys $quantities | sortAlpha }}{{ if $i }}, {{ end }}{{ $name }}: {{ include "lastscrape.quantity" (index $quantities $name) }}{{ end -}} }
  {{- end }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Restarts after a kill or a crash in a pod that never restarts, from Kubernetes 1.35 on. */}}
{{- define "lastscrape.restarts" -}}
restartPolicy: Never
restartPolicyRules:
  - {action: Restart, exitCodes: {operator: In, values: [134, 137, 139]}}
{{- end }}

{{/* When the front listens, main may start. */}}
{{- define "lastscrape.startupProbe" -}}
startupProbe:
  httpGet: {path: /-/ready, port: lastscrape}
  periodSeconds: 1
  failureThreshold: 60
{{- end }}

{{/* A value as CEL: objects by their type, resource lists as maps. Arguments: type, value. */}}
{{- define "lastscrape.cel" -}}
{{- $type := .type -}}
{{- if kindIs "map" .value -}}
  {{- $isMap := or (hasSuffix ".requests" $type) (hasSuffix ".limits" $type) -}}
  {{- $fields := list -}}
  {{- range $name := keys .value | sortAlpha -}}
    {{- $value := include "lastscrape.cel" (dict "type" (printf "%s.%s" $type $name) "value" (index $.value $name)) -}}
    {{- $fields = append $fields (printf "%s: %s" (ternary (squote $name) $name $isMap) $value) -}}
  {{- end -}}
  {{- $line := join ", " $fields -}}
  {{- $isShort := and (lt (len $line) 60) (not (contains "\n" $line)) -}}
  {{- ternary "" $type $isMap }}{{ ternary (printf "{%s}" $line) (printf "{\n%s}" (join ",\n" $fields)) $isShort -}}
{{- else if kindIs "slice" .value -}}
  {{- $items := list -}}
  {{- range .value }}{{ $items = append $items (include "lastscrape.cel" (dict "type" $type "value" .)) }}{{ end -}}
  {{- printf "[%s]" (join ", " $items) -}}
{{- else if kindIs "string" .value -}}
  {{- squote .value -}}
{{- else if kindIs "float64" .value -}}
  {{- int64 .value -}}
{{- else -}}
  {{- .value -}}
{{- end -}}
{{- end }}

{{/* The fields of a YAML object as those of a CEL literal. Arguments: type, yaml. */}}
{{- define "lastscrape.celFields" -}}
{{- $literal := include "lastscrape.cel" (dict "type" .type "value" (fromYaml .yaml)) -}}
{{- $literal | trimPrefix (printf "%s{" .type) | trimSuffix "}" | trim -}}
{{- end }}

{{/* A list of names in CEL, on lines of eight. */}}
{{- define "lastscrape.celNames" -}}
{{- $lines := list -}}
{{- range chunk 8 . }}
  {{- $names := list -}}
  {{- range . }}{{ $names = append $names (squote .) }}{{ end -}}
  {{- $lines = append $lines (join ", " $names) -}}
{{- end -}}
{{- printf "[%s]" (join ",\n" $lines) -}}
{{- end }}

{{/* Where policies and Kyverno look, in all but the one place that asks for the label. */}}
{{- define "lastscrape.notOptedOut" -}}
- {key: lastscrape.dev/inject, operator: NotIn, values: ["false"]}
{{- end }}
{{- define "lastscrape.namespaces" -}}
{{ include "lastscrape.notOptedOut" . }}
{{- with .Values.namespaces }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Variables of CEL that a policy and its warnings share. Argument: the empty list, dyn([]) where the object is dynamic. */}}
{{- define "lastscrape.isLastscrape" -}}
c.name == 'lastscrape' || c.?image.orValue('').matches('(^|/)lastscrape([:@]|$)')
|| c.?env.orValue({{ . }}).exists(e, e.name.startsWith('LASTSCRAPE_') && e.name != 'LASTSCRAPE_SNAPSHOT_URL')
{{- end }}

{{/* What lastscrape.dev/pushgateway names, and its port: 0 where it is not there, -1 where it cannot be used. */}}
{{- define "lastscrape.pushVariables" -}}
- name: pushNames
  expression: >-
    variables.annotations[?'lastscrape.dev/pushgateway'].orValue('').split(',').map(each, each.trim()).filter(each, each != '')
- name: pushPort
  expression: >-
    variables.pushNames.size() == 0 ? 0
    : !variables.pushNames.all(each, each.size() < 250
    && each.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])*[a-z]([-a-z0-9]*[a-z0-9])?:[1-9][0-9]{0,4}$')
    && each.split(':')[1] == variables.pushNames[0].split(':')[1]) ? -1
    : int(variables.pushNames[0].split(':')[1]) < 65536 ? int(variables.pushNames[0].split(':')[1]) : -1
{{- end }}

{{/* The version of an API of policies that this cluster has. Argument: kind. An error where it has none. */}}
{{- define "lastscrape.policyVersion" -}}
{{- $kind := .kind -}}
{{- $found := "" -}}
{{- range $version := list "v1" "v1beta1" "v1alpha1" -}}
  {{- if and (not $found) ($.root.Capabilities.APIVersions.Has (printf "admissionregistration.k8s.io/%s/%s" $version $kind)) -}}
    {{- $found = $version -}}
  {{- end -}}
{{- end -}}
{{- if not $found -}}
  {{- fail (printf "this cluster has no %s: it came with Kubernetes 1.36, and with 1.34 and 1.35 behind a feature gate; where Kyverno is installed set engine=kyverno" $kind) -}}
{{- end -}}
admissionregistration.k8s.io/{{ $found }}
{{- end }}

{{/* An error where Kyverno is asked for and is not there. */}}
{{- define "lastscrape.kyvernoVersion" -}}
{{- if not (.Capabilities.APIVersions.Has "kyverno.io/v1/ClusterPolicy") -}}
  {{- fail "engine is kyverno, and this cluster has no Kyverno (kyverno.io/v1 ClusterPolicy); install Kyverno, or set engine=policy" -}}
{{- end -}}
kyverno.io/v1
{{- end }}

{{/* The groups of a file of rules, without what its head says. */}}
{{- define "lastscrape.groups" -}}
{{- regexReplaceAll "(?s)\\A.*?\\ngroups:" . "groups:" | trim -}}
{{- end }}
