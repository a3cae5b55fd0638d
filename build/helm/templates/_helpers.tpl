{{/* Labels that select the pods: they never change between releases. */}}
{{- define "coder.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "coder.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{ include "coder.selectorLabels" . }}
app.kubernetes.io/part-of: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* "true" when the server serves HTTPS itself. */}}
{{- define "coder.tls" -}}
{{- if .Values.coder.tls.secretNames }}true{{ end -}}
{{- end }}

{{- define "coder.scheme" -}}
{{- if .Values.coder.tls.secretNames }}https{{ else }}http{{ end -}}
{{- end }}

{{/* Names of the environment as the values give it, each between commas. */}}
{{- define "coder.envNames" -}}
,{{ range .Values.coder.env }}{{ .name }},{{ end -}}
{{- end }}

{{/* Refuses what would lose data or start in vain. envFrom may hold anything, so it is believed. */}}
{{- define "coder.check" -}}
{{- $names := include "coder.envNames" . }}
{{- if not (or .Values.coder.workspaceProxy .Values.coder.commandArgs) }}
{{- $database := or (contains ",CODER_PG_CONNECTION_URL," $names) (contains ",CODER_PG_CONNECTION_URL_FILE," $names) .Values.coder.envFrom }}
{{- if and (not $database) (not .Values.coder.persistence.enable) }}
{{- fail "no database: set CODER_PG_CONNECTION_URL in coder.env, or coder.persistence.enable for the built-in one" }}
{{- end }}
{{- if and .Values.coder.persistence.enable (gt (int .Values.coder.replicaCount) 1) }}
{{- fail "coder.persistence is for one replica: several need CODER_PG_CONNECTION_URL" }}
{{- end }}
{{- end }}
{{- end }}
