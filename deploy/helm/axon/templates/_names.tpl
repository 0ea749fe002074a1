{{/* Names and labels. Each is called with the root. */}}

{{- define "axon.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels by which pods are selected; call with (dict "root" $ "component" "gateway"). They never change. */}}
{{- define "axon.selector" -}}
app.kubernetes.io/name: axon
app.kubernetes.io/instance: {{ include "axon.name" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "axon.labels" -}}
{{ include "axon.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* An image; call with (dict "root" $ "image" .Values.images.gateway). */}}
{{- define "axon.image" -}}
{{- $tag := .image.tag | default .root.Chart.AppVersion -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ $tag }}
{{- end -}}
{{- end -}}

{{- define "axon.secretName" -}}
{{- .Values.secrets.name | default (include "axon.name" .) -}}
{{- end -}}

{{- define "axon.proxies" -}}
{{- if ge (int .Values.gateway.proxies) 0 -}}
{{- int .Values.gateway.proxies -}}
{{- else -}}
{{- add (ternary 1 0 .Values.edge.enabled) (ternary 1 0 .Values.ingress.enabled) -}}
{{- end -}}
{{- end -}}
