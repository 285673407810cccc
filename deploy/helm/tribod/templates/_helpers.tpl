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

{{- /* fails where the cluster can be asked and has no such secret: the release, the value's name, the secret's name */}}
{{- define "tribod.needSecret" -}}
{{- $release := index . 0 -}}
{{- if and (lookup "v1" "Namespace" "" $release.Release.Namespace) (not (lookup "v1" "Secret" $release.Release.Namespace (index . 2))) }}{{ fail (printf "%s: there is no secret %s in the namespace %s" (index . 1) (index . 2) $release.Release.Namespace) }}{{ end }}
{{- end }}

{{- define "tribod.otlpPort" -}}
{{- $url := urlParse .Values.otlp.endpoint -}}
{{ regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) }}
{{- end }}

{{- define "tribod.outboxPort" -}}
{{ regexFind ":[0-9]+$" (urlParse .Values.outbox.url).host | trimPrefix ":" | default "5432" }}
{{- end }}
