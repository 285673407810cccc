{{- define "tribod.name" -}}
{{- if contains "tribod" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-tribod{{ end -}}
{{- end }}

{{- define "tribod.selector" -}}
app.kubernetes.io/name: tribod
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tribod.labels" -}}
{{ include "tribod.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "tribod.image" -}}
{{- $kind := ternary "gpu" "cpu" (gt (int .Values.gpu.count) 0) -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default $kind }}
{{- end }}

{{- define "tribod.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled }}{{ include "tribod.name" . }}-tls{{ else }}{{ .Values.tls.secretName }}{{ end -}}
{{- end }}

{{- define "tribod.ini" -}}
{{- $config := deepCopy .Values.config -}}
{{- if gt (int .Values.gpu.count) 0 }}{{ $_ := set $config "server" (mergeOverwrite (dict "backend" "auto") ($config.server | default dict)) }}{{ end -}}
{{- range $section := keys $config | sortAlpha }}
[{{ $section }}]
{{- $options := index $config $section }}
{{- range $option := keys $options | sortAlpha }}
{{- $value := index $options $option }}
{{ $option }} = {{ if kindIs "bool" $value }}{{ ternary "yes" "no" $value }}{{ else if kindIs "float64" $value }}{{ if eq $value (floor $value) }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{ end }}
{{- if include "tribod.tlsSecret" . }}
[tls]
certificate = /etc/tribod/tls/tls.crt
key = /etc/tribod/tls/tls.key
{{ end }}
{{- if not $config.fleet }}
[fleet]
addresses = {{ include "tribod.name" . }}-{}.{{ include "tribod.name" . }}-headless:7410
{{- end }}
{{- end }}

{{- define "tribod.drain" -}}
{{ dig "server" "drain_seconds" 20 .Values.config | int }}
{{- end }}
