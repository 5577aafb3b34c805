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

{{/* The resources of a container. Argument: requests and limits. */}}
{{- define "lastscrape.resources" -}}
{{- $lists := . -}}
{{- if or .requests .limits -}}
resources:
  {{- range $kind := list "requests" "limits" }}
  {{- with $quantities := index $lists $kind }}
  {{ $kind }}: { {{- range $i, $name := keys $quantities | sortAlpha }}{{ if $i }}, {{ end }}{{ $name }}: {{ include "lastscrape.quantity" (index $quantities $name) }}{{ end -}} }
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A quantity as a number, to compare two of them. */}}
{{- define "lastscrape.number" -}}
{{- $text := kindIs "string" . | ternary (toString .) (int64 . | toString) -}}
{{- $units := dict "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 -}}
{{- mulf (regexFind "^[0-9.]+" $text | float64) (get $units (regexFind "[A-Za-z]+$" $text) | default 1.0) -}}
{{- end }}

{{/* An error where requests exceed limits: the API server would refuse every pod that gets such a container. */}}
{{- define "lastscrape.checkResources" -}}
{{- range $name, $request := .Values.resources.requests -}}
  {{- with $limit := get ($.Values.resources.limits | default dict) $name -}}
    {{- if gt (include "lastscrape.number" $request | float64) (include "lastscrape.number" $limit | float64) -}}
      {{- fail (printf "resources.requests.%s is %v, more than resources.limits.%s, %v: no labelled pod could start" $name $request $name $limit) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end }}

{{/* The security context, in the order of the values. */}}
{{- define "lastscrape.security" -}}
{{- with .Values.securityContext -}}
securityContext:
  {{- $order := list "runAsNonRoot" "runAsUser" "runAsGroup" "readOnlyRootFilesystem" "allowPrivilegeEscalation" "capabilities" "seccompProfile" }}
  {{- range $name := concat $order (keys . | sortAlpha) | uniq }}
  {{- if hasKey $.Values.securityContext $name }}
  {{- $value := index $.Values.securityContext $name }}
  {{ $name }}: {{ if kindIs "map" $value }}{ {{- include "lastscrape.flow" $value -}} }{{ else }}{{ toJson $value }}{{ end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{- define "lastscrape.flow" -}}
{{- range $i, $name := keys . | sortAlpha }}{{ if $i }}, {{ end }}{{ $name }}: {{ regexReplaceAll "\"([A-Z]\\w+)\"" (toJson (index $ $name)) "${1}" }}{{ end -}}
{{- end }}

{{/* What every lastscrape container has; `fixed`: whatever its resources. */}}
{{- define "lastscrape.fixed" -}}
terminationMessagePolicy: FallbackToLogsOnError
{{ include "lastscrape.security" . }}
{{- end }}
{{- define "lastscrape.container" -}}
terminationMessagePolicy: FallbackToLogsOnError
{{ include "lastscrape.resources" .Values.resources }}
{{ include "lastscrape.security" . }}
{{- end }}

{{/* Variables of a policy: the resources. In a Guaranteed pod requests equal limits, in a BestEffort pod there are none of CPU and memory: each stays what it is. */}}
{{- define "lastscrape.resourceVariables" -}}
{{- include "lastscrape.checkResources" . -}}
- name: isGuaranteed
  expression: >-
    (object.spec.containers + object.spec.?initContainers.orValue([])).all(c, ['cpu', 'memory'].all(name,
    c.?resources.?limits[?name].hasValue()
    && quantity(c.?resources.?requests[?name].orValue(c.resources.limits[name])).compareTo(quantity(c.resources.limits[name])) == 0))
# A quota may be for all other pods, and a node without room takes this one.
- name: isBestEffort
  expression: >-
    (object.spec.containers + object.spec.?initContainers.orValue([])).all(c, ['requests', 'limits'].all(kind,
    ['cpu', 'memory'].all(name, quantity(c.?resources[?kind][?name].orValue('0')).compareTo(quantity('0')) == 0)))
{{- end }}
{{/* The same: the user, and the container's fixed fields as CEL with it. Arguments of those: type, root. */}}
{{- define "lastscrape.userVariables" -}}
{{- with (.Values.securityContext | default dict).runAsUser -}}
# The pod's own, where all of it has one: the kubelet gives it the tokens of projected volumes only as long as no container has another.
- name: users
  expression: >-
    (variables.spec.containers + variables.spec.?initContainers.orValue(dyn([]))).map(c,
    int(c.?securityContext.?runAsUser.orValue(variables.spec.?securityContext.?runAsUser.orValue(dyn(0)))))
- name: user
  expression: "variables.users.all(each, each > 0 && each == variables.users[0]) ? variables.users[0] : {{ int64 . }}"
{{- end }}
{{- end }}
{{- define "lastscrape.celFixed" -}}
{{- $cel := include "lastscrape.celFields" (dict "type" .type "yaml" (include "lastscrape.fixed" .root)) -}}
{{- regexReplaceAll "runAsUser: [1-9][0-9]*" $cel "runAsUser: variables.user" -}}
{{- end }}
{{- define "lastscrape.celResources" -}}
{{- $type := printf "%s.resources" .type -}}
{{- $guaranteed := .root.Values.resources.guaranteed -}}
{{- $other := omit .root.Values.resources "guaranteed" -}}
{{- $bestEffort := dict -}}
{{- range $kind, $quantities := $other }}{{ $_ := set $bestEffort $kind (omit ($quantities | default dict) "cpu" "memory") }}{{ end -}}
{{- $cel := dict -}}
{{- range $name, $value := dict "guaranteed" (dict "requests" $guaranteed "limits" $guaranteed) "bestEffort" $bestEffort "other" $other -}}
  {{- $yaml := include "lastscrape.resources" $value | fromYaml -}}
  {{- $_ := set $cel $name (include "lastscrape.cel" (dict "type" $type "value" ($yaml.resources | default dict))) -}}
{{- end -}}
resources: variables.isBestEffort ? {{ $cel.bestEffort }}
: variables.isGuaranteed ? {{ $cel.guaranteed }}
: {{ $cel.other }}
{{- end }}

{{/* Variables of a policy: the TTL that a pod asks for. */}}
{{- define "lastscrape.ttlVariables" -}}
# A TTL that lastscrape reads as a duration, at most a year; else the default, and lastscrape's own message names the value.
- name: ttlText
  expression: variables.annotations[?'lastscrape.dev/ttl'].orValue('').trim()
- name: ttlRead
  expression: >-
    {{ include "lastscrape.isSeconds" "variables.ttlText" }} ? duration(variables.ttlText + 's')
    : {{ include "lastscrape.isDuration" "variables.ttlText" }} && variables.ttlText != ''
    ? duration(variables.ttlText) : duration('90s')
- name: ttlSeconds
  expression: >-
    variables.ttlRead <= duration('8760h') ? (variables.ttlRead + duration('999ms')).getSeconds() : 90
{{- end }}

{{/* Restarts after a kill or a crash in a pod that never restarts, from Kubernetes 1.35 on. */}}
{{- define "lastscrape.restarts" -}}
restartPolicy: Never
restartPolicyRules:
  - {action: Restart, exitCodes: {operator: In, values: [134, 137, 139]}}
{{- end }}

{{/* Main starts once the front listens, or 5 s later: only where main needs it from its first moment, for the hook or for pushes. */}}
{{- define "lastscrape.order" -}}
lifecycle:
  postStart:
    exec:
      command: [/lastscrape, --ready]
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

{{/* CEL: the beginning of a text; a control character would have the API server drop the whole warning. */}}
{{- define "lastscrape.shown" -}}
({{ . }}.matches('\\p{Cc}') ? '(control characters)'
: {{ . }}.size() > 60 ? {{ . }}.substring(0, 60) + '...' : {{ . }})
{{- end }}

{{/* CEL: whether a text that is not blank can be read as a duration, as lastscrape itself reads it. Argument: the text. */}}
{{- define "lastscrape.isSeconds" -}}
{{ . }}.matches('^[0-9]{1,8}$')
{{- end }}
{{- define "lastscrape.isDuration" -}}
{{ . }}.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?([0-9]{1,11}ms)?$')
{{- end }}
{{- define "lastscrape.isPort" -}}
{{ . }}.matches('^[0-9]{1,5}$') && int({{ . }}) > 0 && int({{ . }}) < 65536
{{- end }}

{{/* CEL: whether c is a lastscrape: by its name, its image, or a variable that no main has. With arguments it only prints something. */}}
{{- define "lastscrape.hasImage" -}}
c.?image.orValue('').matches('(^|/)lastscrape([:@]|$)')
{{- end }}
{{- define "lastscrape.hasVariable" -}}
c.?env.orValue(dyn([])).exists(e, e.name in ['LASTSCRAPE_DONE_WHEN', 'LASTSCRAPE_METRICS_URL', 'LASTSCRAPE_FRONT'])
{{- end }}
{{- define "lastscrape.isLastscrape" -}}
c.name == 'lastscrape' || c.?args.orValue(dyn([])).size() == 0 && ({{ include "lastscrape.hasImage" . }}
|| {{ include "lastscrape.hasVariable" . }})
{{- end }}

{{/* A variable of CEL: what no policy can mend, of the pod's spec and annotations, variables.spec and variables.annotations. Empty: nothing. */}}
{{- define "lastscrape.podReason" -}}
- name: podReason
  expression: >-
    variables.spec.?hostNetwork.orValue(false) ? 'with hostNetwork localhost is the node'
    : variables.spec.?os.?name.orValue('linux') != 'linux'
    || ['', 'beta.'].exists(old, variables.spec.?nodeSelector[?(old + 'kubernetes.io/os')].orValue('linux') != 'linux'
    || !(variables.spec.?nodeSelector[?(old + 'kubernetes.io/arch')].orValue('amd64') in ['amd64', 'arm64']))
    || variables.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue(dyn([]))
    .exists(term, term.?matchExpressions.orValue(dyn([])).exists(e,
    e.key.matches('^(beta[.])?kubernetes.io/os$')
    && (e.operator == 'In' && !('linux' in e.values) || e.operator == 'NotIn' && 'linux' in e.values)
    || e.key.matches('^(beta[.])?kubernetes.io/arch$') && e.operator == 'In' && !e.values.exists(each, each in ['amd64', 'arm64'])))
    ? 'its image is for Linux on amd64 and arm64'
    : has(variables.spec.resources)
    ? 'the pod sets resources as a whole, which a further container might exceed; give its containers resources of their own'
    : variables.annotations.exists(name, name.matches('^(lastscrape[.]dev/|prometheus[.]io/pa(th$|ram_))')
    && (variables.annotations[name].size() > 30000 || variables.annotations[name].contains('\u0000')))
    ? 'an annotation lastscrape.dev/..., prometheus.io/path or param_... has more than 30000 characters, or a NUL, which no variable can have'
    : ''
{{- end }}

{{/* Variables of CEL that the policy for labelled pods and its warnings share, of a pod or pod template: variables.template. */}}
{{- define "lastscrape.jobVariables" -}}
- name: spec
  expression: variables.template.spec
- name: annotations
  expression: variables.template.?metadata.?annotations.orValue(dyn({}))
{{ include "lastscrape.podReason" . }}
- name: native
  expression: variables.template.spec.?initContainers.orValue(dyn([])).filter(c, c.?restartPolicy.orValue('') == 'Always')
- name: containers
  expression: variables.template.spec.containers + variables.template.spec.?initContainers.orValue(dyn([]))
- name: isThere
  expression: >-
    variables.containers.exists(c, {{ include "lastscrape.isLastscrape" . | nindent 4 | trim }})
# What is taken for lastscrape, and most likely is not.
- name: impostors
  expression: >-
    variables.containers.filter(c, !{{ include "lastscrape.hasImage" . }}
    && (c.name == 'lastscrape' ? !c.?env.orValue(dyn([])).exists(e, e.name.startsWith('LASTSCRAPE_'))
    : c.?args.orValue(dyn([])).size() == 0 && {{ include "lastscrape.hasVariable" . }}))
# Names of a Pushgateway, NAME:PORT, all with one port: with these lastscrape takes its place in this pod.
- name: pushNames
  expression: >-
    variables.annotations[?'lastscrape.dev/pushgateway'].orValue('').split(',').map(each, each.trim()).filter(each, each != '')
- name: ownUrl
  expression: variables.annotations[?'lastscrape.dev/metrics-url'].orValue('').trim()
# The port at which lastscrape takes pushes, by whichever annotation. 0: it takes none, -1: wrong.
- name: pushPort
  expression: >-
    variables.pushNames.size() == 0
    ? (variables.ownUrl.matches('(?i)^pushgateway://(localhost|127[.][.0-9]+|[[]::1[]]):[1-9][0-9]{0,4}/?$')
    ? int(variables.ownUrl.substring(variables.ownUrl.lastIndexOf(':') + 1).replace('/', '')) : 0)
    : !variables.pushNames.all(each, each.size() < 250
    && each.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])*[a-z]([-a-z0-9]*[a-z0-9])?:[1-9][0-9]{0,4}$')
    && each.split(':')[1] == variables.pushNames[0].split(':')[1]) ? -1
    : int(variables.pushNames[0].split(':')[1]) < 65536 ? int(variables.pushNames[0].split(':')[1]) : -1
# What is not "python" is passed on to lastscrape, whose report names it.
- name: hookText
  expression: variables.annotations[?'lastscrape.dev/hook'].orValue('').trim()
# Python's own end calls for the last numbers: every regular container gets the folder where lastscrape puts the hook. Not one whose
# envFrom may set PYTHONPATH: a value in env would replace that, and cannot contain it.
- name: hooked
  expression: >-
    variables.hookText != 'python' ? []
    : variables.template.spec.containers.filter(c, c.?env.orValue(dyn([])).exists(e, e.name == 'PYTHONPATH')
    || !c.?envFrom.orValue(dyn([])).exists(each, 'PYTHONPATH'.startsWith(each.?prefix.orValue(''))))
- name: isHooked
  expression: variables.hooked.size() > 0
# Where the program's metrics are: what is said to lastscrape, else the annotations that people have already, else the port's name.
- name: namedPorts
  expression: >-
    (variables.template.spec.containers + variables.native).map(c, c.?ports.orValue(dyn([])).filter(p,
    p.?name.orValue('') in ['metrics', 'http-metrics'] && p.?protocol.orValue('TCP') == 'TCP')).filter(each, each.size() > 0)
# A textfile's path, and in each container the mounts in which it is: lastscrape needs one of them. Not one that would hide what it
# has there itself, or in which nothing can be mounted: it would not start, nor would main.
- name: filePath
  expression: >-
    variables.pushPort == 0 && variables.ownUrl.matches('(?i)^file://(localhost)?/[^/]')
    ? variables.ownUrl.substring(variables.ownUrl.indexOf('/', 7)) : ''
- name: fileMounts
  expression: >-
    variables.containers.map(c, c.?volumeMounts.orValue(dyn([])).filter(m, !has(m.subPathExpr)
    && !m.mountPath.matches('^/(dev|etc|lib|lib64|usr(/lib(64)?)?|lastscrape(/.*)?|var(/run(/(secrets|lastscrape)(/.*)?)?)?)?/*$')
    && variables.filePath.startsWith(m.mountPath.endsWith('/') ? m.mountPath : m.mountPath + '/'))).filter(each, each.size() > 0)
- name: portText
  expression: variables.annotations[?'prometheus.io/port'].orValue('')
- name: port
  expression: >-
    variables.pushPort != 0 || variables.ownUrl != '' || variables.annotations[?'prometheus.io/scheme'].orValue('') == 'https' ? ''
    : {{ include "lastscrape.isPort" "variables.portText" }} ? string(int(variables.portText))
    : variables.namedPorts.size() == 0 ? '' : string(variables.namedPorts[0][0].containerPort)
- name: frontText
  expression: variables.annotations[?'lastscrape.dev/front'].orValue('').trim()
- name: front
  expression: >-
    variables.frontText == '' ? 9469 : {{ include "lastscrape.isPort" "variables.frontText" }} ? int(variables.frontText) : 0
- name: ports
  expression: >-
    variables.containers.map(c, c.?ports.orValue(dyn([])).filter(p, p.?protocol.orValue('TCP') == 'TCP')
    .map(p, int(p.containerPort))).filter(each, each.size() > 0)
# Each declared port is a target of who goes by annotations: of several, others than the metrics' may be wanted, too.
- name: isSpread
  expression: >-
    variables.annotations[?'prometheus.io/scrape'].orValue('') == 'true' && !('prometheus.io/port' in variables.annotations)
    && (variables.ports.size() > 1 || variables.ports.exists(each, each.size() > 1))
# What goes by annotations finds the front by them: its port, always http, and /metrics where the path was another page's. The port
# also where it was not said, and the one that is declared would be a target besides. Only what changes.
- name: moved
  expression: >-
    ([['prometheus.io/port', string(variables.front)], ['prometheus.io/scheme', 'http']]
    + (variables.ownUrl == '' && variables.pushPort == 0 ? [] : [['prometheus.io/path', '/metrics']]))
    .filter(each, each[0] in variables.annotations ? string(variables.annotations[each[0]]) != each[1] : each[0] == 'prometheus.io/port'
    && variables.annotations[?'prometheus.io/scrape'].orValue('') == 'true' && !variables.isSpread)
# Of these, what the pod reads itself: most likely where its program listens.
- name: read
  expression: >-
    variables.moved.map(each, each[0]).filter(name, [dyn("metadata.annotations['" + name + "']")].exists(path,
    variables.containers.exists(c, c.?env.orValue(dyn([])).exists(e, e.?valueFrom.?fieldRef.?fieldPath.orValue('') == path))
    || variables.spec.?volumes.orValue(dyn([])).exists(v, ([v] + (v.?projected.?sources.orValue(null) == null ? [] : v.projected.sources)).exists(s,
    s.?downwardAPI.?items.orValue(dyn([])).exists(i, i.?fieldRef.?fieldPath.orValue('') == path)))))
# The lowest port of ours, and the lowest one that a user who is not root may take: by the pod; runtimes differ.
- name: lowest
  expression: "variables.pushPort > 0 && variables.pushPort < variables.front ? variables.pushPort : variables.front"
- name: unprivileged
  expression: >-
    (variables.spec.?securityContext.?sysctls.orValue(dyn([])).filter(s, s.name.replace('/', '.') == 'net.ipv4.ip_unprivileged_port_start'
    && s.value.matches('^[0-9]{1,5}$')).map(s, int(s.value)) + [1024])[0]
# Why lastscrape is not added, where it is not there: what the pod would be refused for, or could not work. Empty: it is added.
- name: reason
  expression: >-
    variables.impostors.size() > 0 ? 'the container ' + string(variables.impostors[0].name)
    + ' is taken for it, by its name or a variable LASTSCRAPE_...; rename that'
    : variables.podReason != '' ? variables.podReason
    : 'kubernetes.io/config.mirror' in variables.annotations ? 'it is a static pod, which the kubelet runs from a file of the node'
    : variables.pushPort == 0 && variables.ownUrl == '' && variables.port == ''
    ? 'nothing says where the metrics are; set the annotation prometheus.io/port (1 to 65535; and prometheus.io/path; http only), name'
    + " the container's port metrics or http-metrics, or set lastscrape.dev/metrics-url, or lastscrape.dev/pushgateway where"
    + ' the program pushes'
    : variables.filePath != '' && variables.fileMounts.size() == 0
    ? 'lastscrape.dev/metrics-url is a file, and no container mounts a volume where that is (without subPathExpr, and'
    + ' not at /lastscrape, /usr or /var/run, where lastscrape has files of its own)'
    : variables.front == 0 ? 'lastscrape.dev/front must be the number of a port, 1 to 65535'
    : variables.port == string(variables.front) || variables.ports.exists(each, variables.front in each)
    ? 'port ' + string(variables.front) + ' is in use in this pod; set lastscrape.dev/front to the number of a free one'
    : variables.pushNames.size() == 0
    && variables.ownUrl.matches('^[a-z+]+://(localhost|127[.]0[.]0[.]1|[[]::1[]]):' + string(variables.front) + '([/?#]|$)')
    ? "lastscrape.dev/metrics-url is lastscrape's own port, " + string(variables.front) + "; it must be the program's"
    : variables.pushPort == -1 || variables.pushPort == variables.front || variables.ports.exists(each, variables.pushPort in each)
    ? 'lastscrape.dev/pushgateway must list NAME:PORT, such as pushgateway.monitoring.svc:9091, all with one port that is free in'
    + ' this pod; not a URL, not https, no IP address'
    : variables.lowest < variables.unprivileged
    ? 'port ' + string(variables.lowest) + ' is for root, which it is not; take one from ' + string(variables.unprivileged)
    + " on, or set the sysctl net.ipv4.ip_unprivileged_port_start in the pod's securityContext to " + string(variables.lowest)
    : variables.read.size() > 0
    ? 'the pod reads its own annotation ' + variables.read[0] + ', which would change; write its value there instead'
    : variables.isHooked && (variables.template.spec.?volumes.orValue(dyn([])).exists(v, v.name == 'lastscrape-hooks')
    || variables.hooked.exists(c, c.?volumeMounts.orValue(dyn([])).exists(m, m.mountPath.matches('(^|/)lastscrape-hooks(/|$)'))))
    ? 'lastscrape.dev/hook needs a volume lastscrape-hooks and a folder /lastscrape-hooks, which this pod has already'
    : ''
{{- end }}

{{/* The keeper: its name, its URL for pods, and the volume by which a pod shows who it is. */}}
{{- define "lastscrape.keeperName" -}}
{{ .Values.name }}-keeper
{{- end }}
{{- define "lastscrape.keeperUrl" -}}
http://{{ include "lastscrape.keeperName" . }}.{{ .Release.Namespace }}.svc:9470
{{- end }}
{{- define "lastscrape.podVolume" -}}
name: lastscrape-pod
projected:
  sources:
    - serviceAccountToken: {audience: lastscrape, path: token}
    - downwardAPI:
        items:
          - {path: labels, fieldRef: {fieldPath: metadata.labels}}
          - {path: annotations, fieldRef: {fieldPath: metadata.annotations}}
{{- end }}

{{/* Variables of a policy: what replaces the hold. */}}
{{- define "lastscrape.handOverVariables" -}}
# What replaces the hold: none, push, or the URL of a keeper, which wants a volume that tells who the pod is.
- name: handOverText
  expression: variables.annotations[?'lastscrape.dev/hand-over'].orValue('').trim()
- name: handOver
  expression: >-
    variables.handOverText == '' ? '{{ if .Values.keeper.enabled }}{{ include "lastscrape.keeperUrl" . }}{{ end }}' : variables.handOverText
{{- end }}

{{/* What a policy that changes pods is: one of the API server, or of Kyverno, which has the same fields. */}}
{{- define "lastscrape.mutatingKind" -}}
{{- if eq .Values.engine "kyverno" -}}
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
{{- else -}}
apiVersion: {{ include "lastscrape.policyVersion" (dict "root" . "kind" "MutatingAdmissionPolicy") }}
kind: MutatingAdmissionPolicy
{{- end }}
{{- end }}

{{/* More conditions of `namespaces`, in CEL: the pod of `helm test` is in the namespace of the release, which they may leave out. */}}
{{- define "lastscrape.namespaceCondition" -}}
{{- with .Values.namespaces -}}
- name: isCovered
  expression: >-
    object.metadata.?labels[?'lastscrape.dev/test'].orValue('') == {{ squote $.Release.Name }} || (
    {{- range $i, $each := . }}
    {{- $label := printf "namespaceObject.metadata.?labels[?%s]" (squote .key) }}
    {{ if $i }}&& {{ end }}{{ if eq .operator "Exists" }}{{ $label }}.hasValue()
    {{- else if eq .operator "DoesNotExist" }}!{{ $label }}.hasValue()
    {{- else }}{{ if eq .operator "NotIn" }}!{{ end }}{{ $label }}.optMap(value, value in {{ toJson .values }}).orValue(false)
    {{- end }}
    {{- end }})
{{- end }}
{{- end }}

{{/* What only one of the two has: Kyverno is told to leave the templates of Jobs alone, the API server's policy has a binding. */}}
{{- define "lastscrape.mutatingExtra" -}}
{{- if eq .Values.engine "kyverno" }}
  autogen: {podControllers: {controllers: []}}
{{- end }}
{{- end }}
{{- define "lastscrape.mutatingBinding" -}}
{{- if ne .root.Values.engine "kyverno" }}
---
apiVersion: {{ include "lastscrape.policyVersion" (dict "root" .root "kind" "MutatingAdmissionPolicy") }}
kind: MutatingAdmissionPolicyBinding
metadata:
  name: {{ toYaml .name }}
spec:
  policyName: {{ toYaml .name }}
{{- end }}
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
{{- if and (not $found) (semverCompare ">=1.36.0-0" $.root.Capabilities.KubeVersion.Version) -}}
  {{- $found = "v1" -}}
{{- end -}}
{{- if not $found -}}
  {{- fail (printf "this cluster has no %s: it came with Kubernetes 1.36, and with 1.34 and 1.35 behind a feature gate; where Kyverno is installed set engine=kyverno" $kind) -}}
{{- end -}}
admissionregistration.k8s.io/{{ $found }}
{{- end }}

{{/* The groups of a file of rules, without what its head says. */}}
{{- define "lastscrape.groups" -}}
{{- regexReplaceAll "(?s)\\A.*?\\ngroups:" . "groups:" | trim -}}
{{- end }}
