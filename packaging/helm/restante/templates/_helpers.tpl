{{/* The name in labels. */}}
{{- define "restante.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of all objects: that of the release, with that of the chart if the release has another name. */}}
{{- define "restante.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- $name := include "restante.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* The labels that select the pods of the nodes. They cannot be changed in an upgrade. */}}
{{- define "restante.selectorLabels" -}}
app.kubernetes.io/name: {{ include "restante.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The labels of all objects. */}}
{{- define "restante.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "restante.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "restante.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "restante.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "restante.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{/* The Secret with files in /config: created, existing, or empty. */}}
{{- define "restante.filesSecret" -}}
{{- if .Values.files.existingSecret }}
{{- .Values.files.existingSecret }}
{{- else if .Values.files.data }}
{{- printf "%s-files" (include "restante.fullname" .) }}
{{- end }}
{{- end }}

{{/* The scheme of the web listener. */}}
{{- define "restante.scheme" -}}
{{- $web := .Values.settings.web | default dict }}
{{- ternary "HTTPS" "HTTP" (eq (toString $web.tlsenabled) "true") }}
{{- end }}

{{/* The base path of the web listener: empty, or /x/y without a trailing slash. */}}
{{- define "restante.basePath" -}}
{{- $web := .Values.settings.web | default dict }}
{{- with include "restante.settingValue" ($web.basepath | default "") | trimAll "/" }}{{ printf "/%s" . }}{{ end }}
{{- end }}

{{/* The value of a setting as text. YAML numbers are floating-point numbers here, which would become 1.024e+07. */}}
{{- define "restante.settingValue" -}}
{{- if kindIs "slice" . }}
{{- $texts := list }}
{{- range . }}{{ $texts = append $texts (include "restante.settingValue" .) }}{{ end }}
{{- join "," $texts }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) }}
{{- int64 . }}
{{- else }}
{{- . }}
{{- end }}
{{- end }}

{{/* A map of sections as lines `VARIABLE: "value"`. */}}
{{- define "restante.variables" -}}
{{- range $section, $settings := . }}
{{- if kindIs "map" $settings }}
{{- range $name, $value := $settings }}
{{- if not (kindIs "invalid" $value) }}
RESTANTE_{{ upper $section }}_{{ upper $name }}: {{ include "restante.settingValue" $value | quote }}
{{- end }}
{{- end }}
{{- else if not (kindIs "invalid" $settings) }}
RESTANTE_{{ upper $section }}: {{ include "restante.settingValue" $settings | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The settings of the ConfigMap: those of the values, and those that follow from other values. */}}
{{- define "restante.settings" -}}
{{- $settings := deepCopy .Values.settings }}
{{- $storage := merge (dict "type" .Values.storage.type) ($settings.storage | default dict) }}
{{- $_ := set $settings "storage" $storage }}
{{- if .Values.ingress.enabled }}
{{- $web := $settings.web | default dict }}
{{- $hosts := $web.hosts | default list }}
{{- if kindIs "string" $hosts }}{{ $hosts = splitList "," $hosts }}{{ end }}
{{- $_ := set $web "hosts" (concat $hosts .Values.ingress.hosts | uniq) }}
{{- $_ := set $settings "web" $web }}
{{- end }}
{{- if not .Values.files.existingSecret }}
{{- $auth := $settings.auth | default dict }}
{{- if hasKey .Values.files.data "users" }}{{ $auth = merge $auth (dict "users" "/config/users") }}{{ end }}
{{- if hasKey .Values.files.data "tokens.toml" }}{{ $auth = merge $auth (dict "tokens" "/config/tokens.toml") }}{{ end }}
{{- $_ := set $settings "auth" $auth }}
{{- end }}
{{- include "restante.variables" $settings }}
{{- end }}

{{/* Fails with a clear message if values contradict each other. */}}
{{- define "restante.validate" -}}
{{- $type := .Values.storage.type }}
{{- if ne $type "postgres" }}
{{- if or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled }}
{{- fail (printf "several nodes need storage.type=postgres: with storage.type=%s each would have its own mail; set replicas=1 and autoscaling.enabled=false" $type) }}
{{- end }}
{{- else if not (or .Values.storage.postgres.url .Values.storage.postgres.existingSecret) }}
{{- fail "storage.type=postgres needs storage.postgres.url or storage.postgres.existingSecret" }}
{{- end }}
{{- if and .Values.storage.postgres.url .Values.storage.postgres.existingSecret }}
{{- fail "set either storage.postgres.url or storage.postgres.existingSecret, not both" }}
{{- end }}
{{- if and .Values.auth.secret .Values.auth.existingSecret }}
{{- fail "set either auth.secret or auth.existingSecret, not both" }}
{{- end }}
{{- if and .Values.files.data .Values.files.existingSecret }}
{{- fail "set either files.data or files.existingSecret, not both" }}
{{- end }}
{{- range $key, $instead := dict "smtp.addr" "service.ports.smtp" "pop3.addr" "service.ports.pop3" "imap.addr" "service.ports.imap" "web.addr" "service.ports.http" "storage.type" "storage.type" "storage.path" "storage.persistence" "storage.params" "storage.persistence" "storage.url" "storage.postgres.url" "auth.secret" "auth.secret" }}
{{- $parts := splitList "." $key }}
{{- range $map := list "settings" "secretSettings" }}
{{- if hasKey (index $.Values $map | dig (first $parts) dict) (last $parts) }}
{{- fail (printf "%s.%s is determined by the value %s" $map $key $instead) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
