{{/* Settings as the environment of a process. */}}

{{/* A value as text: YAML's large whole numbers come as floats. */}}
{{- define "axon.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* Variables of settings, merged: later ones win. Call with a list of maps of settings. */}}
{{- define "axon.variables" -}}
{{- $all := dict -}}
{{- range . -}}
{{- range $section, $value := . -}}
{{- if kindIs "map" $value -}}
{{- range $name, $inner := $value -}}
{{- $_ := set $all (printf "AXON_%s_%s" $section $name | upper) (include "axon.text" $inner) -}}
{{- end -}}
{{- else -}}
{{- $_ := set $all (printf "AXON_%s" $section | upper) (include "axon.text" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name := keys $all | sortAlpha }}
- name: {{ $name }}
  value: {{ get $all $name | quote }}
{{- end -}}
{{- end -}}

{{/* The environment that every role has; call with (dict "root" $ "settings" (list …) "secrets" (list "queue" …)). */}}
{{- define "axon.env" -}}
{{- $root := .root -}}
{{- $common := dict "data_dir" "/var/lib/axon" "namespace" (include "axon.name" $root) "log" (dict "format" "json" "banner" "never") -}}
{{- range $word := .secrets }}
{{- $where := get $root.Values.secrets $word }}
- name: AXON_{{ upper $word }}
  valueFrom:
    secretKeyRef:
      name: {{ $where.name | default (include "axon.secretName" $root) }}
      key: {{ $where.key }}
{{- end }}
- name: AXON_ZONE # clusters from 1.35 on label pods with their zone; elsewhere it is empty
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['topology.kubernetes.io/zone']
- name: HOME
  value: /var/lib/axon
{{- include "axon.variables" (concat (list $common $root.Values.settings) .settings) }}
{{- end -}}
