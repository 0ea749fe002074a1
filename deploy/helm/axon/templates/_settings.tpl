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

{{/* Where the files of batches are, as settings in JSON; nothing where each gateway keeps its own. */}}
{{- define "axon.filesSettings" -}}
{{- $where := ternary "/var/lib/axon-files" .Values.batchFiles.url (ne .Values.batchFiles.claim "") -}}
{{- ternary (dict "batches" (dict "files_dir" $where)) dict (ne $where "") | toJson -}}
{{- end -}}

{{/* The environment that every role has; call with (dict "root" $ "settings" (list …) "hashes" true): whether it hashes
keys. URLs of services are in files, which are read again for every new connection: passwords may be rotated. */}}
{{- define "axon.env" -}}
{{- $root := .root -}}
{{- $common := dict "data_dir" "/var/lib/axon" "namespace" (include "axon.name" $root) "log" (dict "format" "json" "banner" "never") -}}
{{- range $word := list "queue" "live" "store" -}}
{{- $_ := set $common (printf "%s_file" $word) (printf "/etc/axon-secrets/%s" $word) -}}
{{- end -}}
{{- if $root.Values.secrets.ca.name }}{{ $_ := set $common "service_ca_file" "/etc/axon-secrets/ca.crt" }}{{ end -}}
{{- if .hashes }}
- name: AXON_PEPPER
  valueFrom:
    secretKeyRef:
      name: {{ $root.Values.secrets.pepper.name | default (include "axon.secretName" $root) }}
      key: {{ $root.Values.secrets.pepper.key }}
{{- end }}
- name: AXON_ZONE # clusters from 1.35 on label pods with their zone; elsewhere it is empty
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['topology.kubernetes.io/zone']
- name: HOME
  value: /var/lib/axon
{{- include "axon.variables" (concat (list $common $root.Values.settings) .settings) }}
{{- end -}}

{{/* The volume with the URLs of the services and the CAs that vouch for them. */}}
{{- define "axon.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $word := list "queue" "live" "store" }}
      {{- $where := get $.Values.secrets $word }}
      - secret:
          name: {{ $where.name | default (include "axon.secretName" $) }}
          items: [{key: {{ $where.key }}, path: {{ $word }}}]
      {{- end }}
      {{- with .Values.secrets.ca }}
      {{- if .name }}
      - {{ ternary "configMap" "secret" (eq .kind "ConfigMap") }}:
          name: {{ .name }}
          items: [{key: {{ .key }}, path: ca.crt}]
      {{- end }}
      {{- end }}
{{- end -}}
